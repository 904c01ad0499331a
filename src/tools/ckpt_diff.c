/* ckpt_diff.c: rill ckpt diff: what two checkpoints have in common and what not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/op_list.h"
#include "tensor/number.h"
#include "tools/ckpt.h"
#include "tools/command.h"
#include "tools/report.h"

static const char usage[] =
    "ckpt diff A B [--rtol R] [--atol T] [--json]\n\n"
    "Compares names, types, shapes and values. Elements a and b are equal when |a - b| <= T + R * |b|, or both are "
    "NaN. Exit code\n"
    "0: no difference, 1: some, or one of them cannot be read.\n";

typedef struct Diff {
    Bundle *a, *b;
    double rtol, atol;
    cJSON *only_a, *only_b, *different; /* NULL: print instead */
    int64_t same, changed;
} Diff;

/* How far two tensors of one type and shape are apart. */
typedef struct Distance {
    int64_t count; /* elements that differ */
    double largest;
    int64_t at; /* where */
} Distance;

/* The distance of two whole numbers, which doubles may not tell apart. */
static double whole_apart(const Tensor *a, const Tensor *b, int64_t i) {
    bool is_unsigned = number_kind(a->dtype) == NUMBER_UINT;
    uint64_t x = is_unsigned ? number_uint(a, i) : (uint64_t)number_int(a, i);
    uint64_t y = is_unsigned ? number_uint(b, i) : (uint64_t)number_int(b, i);
    bool less = is_unsigned ? x < y : (int64_t)x < (int64_t)y;
    return (double)(less ? y - x : x - y);
}

/* Whether element i differs; *apart is how far it is. */
static bool element_differs(const Diff *d, const Tensor *a, const Tensor *b, int64_t i, double *apart) {
    NumberKind kind = number_kind(a->dtype);
    *apart = 0;
    if (a->dtype == DT_STRING) return !str_eq(tstring_str(&tensor_str(a)[i]), tstring_str(&tensor_str(b)[i]));
    if (kind == NUMBER_NONE) return false;
    double re_a = number_real(a, i), re_b = number_real(b, i), im_a = number_imag(a, i), im_b = number_imag(b, i);
    if (kind == NUMBER_REAL || kind == NUMBER_COMPLEX) {
        bool nan_a = isnan(re_a) || isnan(im_a), nan_b = isnan(re_b) || isnan(im_b);
        if ((nan_a && nan_b) || (re_a == re_b && im_a == im_b)) return false;
        *apart = nan_a || nan_b ? NAN : hypot(re_a - re_b, im_a - im_b);
    } else {
        *apart = whole_apart(a, b, i);
    }
    return !(*apart <= d->atol + d->rtol * hypot(re_b, im_b)) || isinf(*apart);
}

static Distance measure(const Diff *d, const Tensor *a, const Tensor *b) {
    Distance found = {.at = -1};
    for (int64_t i = 0; i < a->count; i++) {
        double apart;
        if (!element_differs(d, a, b, i, &apart)) continue;
        found.count++;
        if (found.at >= 0 && !(apart > found.largest) && !(isnan(apart) && !isnan(found.largest))) continue;
        found.largest = apart;
        found.at = i;
    }
    return found;
}

static void tell_only(Diff *d, cJSON *list, const char *mark, Str name) {
    d->changed++;
    if (list)
        report_str(list, NULL, name);
    else
        printf("%s %.*s\n", mark, STR_ARG(name));
}

static void tell_types(Diff *d, Str name, const BundleEntry *a, const BundleEntry *b) {
    char *types[] = {report_type(a->dtype, &a->shape), report_type(b->dtype, &b->shape)};
    d->changed++;
    if (d->different) {
        cJSON *item = report_object(d->different, NULL);
        report_str(item, "name", name);
        report_str(item, "what", a->dtype != b->dtype ? STR("dtype") : STR("shape"));
        report_str(item, "a", str_of(types[0]));
        report_str(item, "b", str_of(types[1]));
    } else {
        printf("! %.*s  %s, %s\n", STR_ARG(name), types[0], types[1]);
    }
    free(types[0]);
    free(types[1]);
}

static void tell_values(Diff *d, Str name, const Tensor *a, const Distance *found) {
    d->changed++;
    bool numbers = number_kind(a->dtype) != NUMBER_NONE;
    if (d->different) {
        cJSON *item = report_object(d->different, NULL);
        report_str(item, "name", name);
        report_str(item, "what", STR("values"));
        report_int(item, "differing", found->count);
        report_int(item, "elements", a->count);
        report_int(item, "index", found->at);
        if (numbers) report_double(item, "max_abs_diff", found->largest);
        return;
    }
    printf("! %.*s  %lld of %lld elements", STR_ARG(name), (long long)found->count, (long long)a->count);
    if (numbers) printf(", at most %.9g apart (element %lld)", found->largest, (long long)found->at);
    putchar('\n');
}

static Error *compare(Diff *d, Str name) {
    BundleEntry a = {0}, b = {0};
    Tensor *x = NULL, *y = NULL;
    Error *err = bundle_find(d->a, name, &a);
    if (!err) err = bundle_find(d->b, name, &b);
    if (!err && (a.dtype != b.dtype || !shape_eq(&a.shape, &b.shape))) {
        tell_types(d, name, &a, &b);
    } else if (!err) {
        err = error_wrap(bundle_read(d->a, name, &x), "the first");
        if (!err) err = error_wrap(bundle_read(d->b, name, &y), "the second");
        Distance found = err ? (Distance){0} : measure(d, x, y);
        if (!err && found.count) tell_values(d, name, x, &found);
        if (!err && !found.count) d->same++;
    }
    tensor_unref(x);
    tensor_unref(y);
    bundle_entry_clear(&a);
    bundle_entry_clear(&b);
    return err;
}

static Error *compare_all(Diff *d) {
    Error *err = NULL;
    for (int64_t i = 0; !err && i < bundle_count(d->a); i++) {
        Str name = bundle_name(d->a, i);
        if (ckpt_is_part(name)) continue;
        if (bundle_has(d->b, name))
            err = compare(d, name);
        else
            tell_only(d, d->only_a, "<", name);
    }
    for (int64_t i = 0; !err && i < bundle_count(d->b); i++) {
        Str name = bundle_name(d->b, i);
        if (!ckpt_is_part(name) && !bundle_has(d->a, name)) tell_only(d, d->only_b, ">", name);
    }
    return err;
}

int ckpt_diff(int argc, char **argv) {
    Diff d = {0};
    bool as_json = false, help = false;
    const Flag flags[] = {
        {"rtol", FLAG_FLOAT, &d.rtol, "R", "relative tolerance (0)"},
        {"atol", FLAG_FLOAT, &d.atol, "T", "absolute tolerance (0)"},
        {"json", FLAG_BOOL, &as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &help, NULL, "print this"},
        {0},
    };
    const char *paths[2];
    int count, code;
    if (!command_parse(flags, usage, argc, argv, paths, 2, 2, &count, &code)) return code;
    ops_register_all();
    cJSON *json = as_json ? cJSON_CreateObject() : NULL;
    if (json) {
        d.only_a = report_array(json, "only_in_a");
        d.only_b = report_array(json, "only_in_b");
        d.different = report_array(json, "different");
    }
    Error *err = ckpt_open(paths[0], &d.a);
    if (!err) err = ckpt_open(paths[1], &d.b);
    if (!err) err = compare_all(&d);
    if (err) {
        code = command_failed(argv[0], err);
        cJSON_Delete(json);
    } else {
        if (json) {
            report_int(json, "same", d.same);
            report_print(json);
        } else {
            printf("%lld tensors the same, %lld not\n", (long long)d.same, (long long)d.changed);
        }
        code = d.changed ? EXIT_FAILURE : 0;
    }
    bundle_close(d.a);
    bundle_close(d.b);
    return code;
}
