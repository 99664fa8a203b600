"""Which constructs of the shell's grammar are trusted to mean what they seem to."""

import re

from agent.permissions.words import names

CONTAINERS = names(
    "program list pipeline subshell compound_statement negated_command if_statement elif_clause else_clause"
    " while_statement do_group for_statement case_statement case_item command_substitution"
    " process_substitution"
)
"""Nodes whose parts are statements, words and `TOKENS`."""

TOKENS = names(
    "; & && || | |& ( ) { } ! if then fi elif else while until do done for in case esac ;; ;& ;;& $( ` <( >("
)

RESERVED = names(
    "! { } [[ ]] if then else elif fi for while until do done case esac select function coproc in (("
)
"""Words that are no program where bash expects a command."""

REDIRECTS = names("file_redirect heredoc_redirect herestring_redirect")

SAFE_TESTS = names("-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -L -N -O -G -S -n -z -nt -ot -ef")
"""Operators of `[[ ]]` that do not evaluate their operands as arithmetic."""

TEST_NODES = names("unary_expression binary_expression parenthesized_expression")
TEST_TOKENS = names("&& || ( ) ! == = != =~ < > -a -o")

SAFE_EXPANSION = names(
    '${ } # :- - :+ + :? ? ## % %% / // /# /% , ,, ^ ^^ " variable_name special_variable_name string_content'
)
"""Parts of `${...}` that neither assign, nor evaluate, nor look up another variable."""

HIDDEN_EXPANSION = re.compile(r"`|\$[({\[\w]|[<>]\(")
BLANKS = re.compile(rb"(?:[ \t\n]|\\\n)*")
BLANKS_IN_LINE = re.compile(rb"(?:[ \t]|\\\n)*")
NOTHING = re.compile(rb"")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
PLAIN_ARITHMETIC = re.compile(r"\$\(\([\d\s()+*/%<>=!&|^?:,-]*\)\)")
