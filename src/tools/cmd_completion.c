/* cmd_completion.c: rill completion: what makes a shell complete rill's commands, by the table of them, and their flags, by their --help. */
#include <stdio.h>

#include "tools/command.h"

/* "serve up demo ..." */
static void print_names(const Subcommand *rows) {
    for (const Subcommand *r = rows; r->name; r++) printf("%s%s", r == rows ? "" : " ", r->name);
}

static void print_bash(void) {
    fputs("# Completion of rill for bash: eval \"$(rill completion bash)\"\n"
          "_rill() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} path=(\"${COMP_WORDS[1]}\") below= i\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '--help",
          stdout);
    for (const Command *c = commands; c->name; c++) printf(" %s", c->name);
    puts("' -- \"$word\"))\n"
         "        return\n"
         "    fi\n"
         "    case ${COMP_WORDS[1]} in");
    for (const Command *c = commands; c->name; c++) {
        if (!c->rows) continue;
        printf("        %s) below='", c->name);
        print_names(c->rows);
        puts("' ;;");
    }
    puts("    esac\n"
         "    if [ -n \"$below\" ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
         "        COMPREPLY=($(compgen -W \"--help $below\" -- \"$word\"))\n"
         "        return\n"
         "    fi\n"
         "    [ -n \"$below\" ] && path+=(\"${COMP_WORDS[2]}\")\n"
         "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
         "        [ \"${COMP_WORDS[i]}\" = -- ] && word=\n"
         "    done\n"
         "    case $word in\n"
         "        -*) COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" \"${path[@]}\" --help 2>/dev/null | sed -n 's/^  \\(--[a-z_-]*\\) .*/\\1/p')\" -- \"$word\")) ;;\n"
         "        *) compopt -o default 2>/dev/null ;;\n"
         "    esac\n"
         "}\n"
         "complete -F _rill rill");
}

static void print_zsh_row(const char *name, const char *help) {
    printf(" '%s:%s'", name, help); /* no row has a quote or a colon: commands_test.py */
}

static void print_zsh(void) {
    fputs("#compdef rill\n"
          "# Completion of rill for zsh: a file _rill in a folder of $fpath\n"
          "_rill() {\n"
          "    local -a below from flags\n"
          "    from=($words[2])\n"
          "    if (( CURRENT == 2 )); then\n"
          "        below=(",
          stdout);
    for (const Command *c = commands; c->name; c++) print_zsh_row(c->name, c->help);
    puts(")\n"
         "        _describe command below\n"
         "        return\n"
         "    fi\n"
         "    case $words[2] in");
    for (const Command *c = commands; c->name; c++) {
        if (!c->rows) continue;
        printf("        %s) below=(", c->name);
        for (const Subcommand *r = c->rows; r->name; r++) print_zsh_row(r->name, r->help);
        puts(") ;;");
    }
    puts("    esac\n"
         "    if (( $#below )); then\n"
         "        if (( CURRENT == 3 )); then\n"
         "            _describe command below\n"
         "            return\n"
         "        fi\n"
         "        from+=($words[3])\n"
         "    fi\n"
         "    if [[ $words[CURRENT] == -* ]] && (( ! ${words[(I)--]} || ${words[(I)--]} >= CURRENT )); then\n"
         "        flags=(${(f)\"$($words[1] $from --help 2>/dev/null | sed -n 's/^  \\(--[a-z_-]*\\) .*/\\1/p')\"})\n"
         "        compadd -- $flags\n"
         "    else\n"
         "        _files\n"
         "    fi\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _rill ]; then _rill \"$@\"; else compdef _rill rill; fi");
}

static int print_for(int argc, char **argv, const char *usage, void (*print)(void)) {
    bool help = false;
    const Flag flags[] = {{"help", FLAG_BOOL, &help, NULL, "print this"}, {0}};
    int count, code;
    if (!command_parse(flags, usage, argc, argv, NULL, 0, 0, &count, &code)) return code;
    print();
    return 0;
}

static int completion_bash(int argc, char **argv) {
    return print_for(argc, argv, "completion bash\n\nFor this shell: eval \"$(rill completion bash)\". make install puts it where bash-completion looks.\n", print_bash);
}

static int completion_zsh(int argc, char **argv) {
    return print_for(argc, argv, "completion zsh\n\nFor this shell: eval \"$(rill completion zsh)\", after compinit. For all: write it to a file _rill in a folder of $fpath.\n", print_zsh);
}

const Subcommand completion_rows[] = {
    {"bash", completion_bash, "for bash"},
    {"zsh", completion_zsh, "for zsh"},
    {0},
};

int cmd_completion(int argc, char **argv) {
    return subcommand_run(completion_rows, "completion", "prints what makes a shell complete commands and flags", argc, argv);
}
