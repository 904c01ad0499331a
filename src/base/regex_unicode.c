/* regex_unicode.c: classes of characters by what Unicode says of them: \pL, \p{Greek}, and letters that differ only in
 * case. */
#include <string.h>
#include <unicode/uchar.h>
#include <unicode/uset.h>

#include "base/regex_internal.h"

typedef struct Category {
    const char *name;
    uint32_t mask;
} Category;

/* C has not those that stand for no character. */
static const Category categories[] = {
    {"Any", UINT32_MAX},  {"C", U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK | U_GC_CS_MASK},
    {"Cc", U_GC_CC_MASK}, {"Cf", U_GC_CF_MASK},
    {"Co", U_GC_CO_MASK}, {"Cs", U_GC_CS_MASK},
    {"L", U_GC_L_MASK},   {"Ll", U_GC_LL_MASK},
    {"Lm", U_GC_LM_MASK}, {"Lo", U_GC_LO_MASK},
    {"Lt", U_GC_LT_MASK}, {"Lu", U_GC_LU_MASK},
    {"M", U_GC_M_MASK},   {"Mc", U_GC_MC_MASK},
    {"Me", U_GC_ME_MASK}, {"Mn", U_GC_MN_MASK},
    {"N", U_GC_N_MASK},   {"Nd", U_GC_ND_MASK},
    {"Nl", U_GC_NL_MASK}, {"No", U_GC_NO_MASK},
    {"P", U_GC_P_MASK},   {"Pc", U_GC_PC_MASK},
    {"Pd", U_GC_PD_MASK}, {"Pe", U_GC_PE_MASK},
    {"Pf", U_GC_PF_MASK}, {"Pi", U_GC_PI_MASK},
    {"Po", U_GC_PO_MASK}, {"Ps", U_GC_PS_MASK},
    {"S", U_GC_S_MASK},   {"Sc", U_GC_SC_MASK},
    {"Sk", U_GC_SK_MASK}, {"Sm", U_GC_SM_MASK},
    {"So", U_GC_SO_MASK}, {"Z", U_GC_Z_MASK},
    {"Zl", U_GC_ZL_MASK}, {"Zp", U_GC_ZP_MASK},
    {"Zs", U_GC_ZS_MASK},
};

/* ICU knows a script by many names, RE2 by its long one. */
static bool fill_script(USet *set, Str name, UErrorCode *status) {
    char text[64];
    if (name.len >= sizeof text) return false;
    memcpy(text, name.ptr, name.len);
    text[name.len] = 0;
    int32_t script = u_getPropertyValueEnum(UCHAR_SCRIPT, text);
    const char *known =
        script == UCHAR_INVALID_CODE ? NULL : u_getPropertyValueName(UCHAR_SCRIPT, script, U_LONG_PROPERTY_NAME);
    if (!known || !str_is(name, known)) return false;
    uset_applyIntPropertyValue(set, UCHAR_SCRIPT, script, status);
    return true;
}

static bool fill(USet *set, Str name) {
    UErrorCode status = U_ZERO_ERROR;
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++) {
        if (!str_is(name, categories[i].name)) continue;
        uset_applyIntPropertyValue(set, UCHAR_GENERAL_CATEGORY_MASK, (int32_t)categories[i].mask, &status);
        return U_SUCCESS(status);
    }
    return fill_script(set, name, &status) && U_SUCCESS(status);
}

static void add_ranges(RegexClass *c, const USet *set) {
    for (int32_t i = 0; i < uset_getItemCount(set); i++) {
        UChar32 low = 0, high = 0;
        UErrorCode status = U_ZERO_ERROR;
        if (uset_getItem(set, i, &low, &high, NULL, 0, &status) == 0)
            regex_class_add(c, (uint32_t)low, (uint32_t)high); /* others are strings */
    }
}

void regex_add_cases(RegexClass *c, uint32_t low, uint32_t high) {
    USet *set = uset_open((UChar32)low, (UChar32)high);
    uset_closeOver(set, USET_CASE_INSENSITIVE);
    add_ranges(c, set);
    uset_close(set);
}

size_t regex_add_unicode(RegexClass *c, Str escape, bool ignore_case, bool *known) {
    bool negated = escape.ptr[0] == 'P';
    uint32_t rune;
    size_t len = escape.len;
    Str name = STR("");
    *known = false;
    if (escape.len > 1 && escape.ptr[1] == '{') {
        const char *end = memchr(escape.ptr, '}', escape.len);
        if (!end) return len;
        len = (size_t)(end - escape.ptr) + 1;
        name = str_slice(escape, 2, len - 1);
    } else if (escape.len > 1) {
        len = 1 + utf8_next(escape, 1, &rune);
        name = str_slice(escape, 1, len);
    }
    if (name.len && name.ptr[0] == '^') {
        negated = !negated;
        name = str_slice(name, 1, name.len);
    }
    USet *set = uset_openEmpty();
    *known = fill(set, name);
    if (ignore_case) uset_closeOver(set, USET_CASE_INSENSITIVE);
    if (negated) uset_complement(set);
    if (*known) add_ranges(c, set);
    uset_close(set);
    return len;
}
