"""Variables that a command line may set without a question."""

import re

from agent.permissions.words import Assignment

# they name programs, libraries, options or places to load code from, or change how the shell reads the line
_DANGEROUS = re.compile(
    r"PATH|HOME|SHELL|ENV|BASH.*|SHELLOPTS|PS[0-9]|PROMPT_COMMAND|CDPATH|GLOBIGNORE|EXECIGNORE|HISTFILE|TMPDIR|USER"
    r"|OPT(IND|ARG|ERR)|RANDOM|SECONDS|LINENO|FUNCNEST|TIMEFORMAT|POSIXLY_CORRECT|COMP.*|READLINE.*|INPUTRC"
    r"|LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_.*|GLIBC_.*|GIT.*|SSH.*|GPG.*|XDG_.*|AGENT_.*"
    r"|(.*_)?(PAGER|EDITOR|VISUAL|BROWSER|ASKPASS|WRAPPER|SHELL|LAUNCHER|LINKER|RUNNER|COMMAND|CMD|EXEC|PROXY|OPTIONS"
    r"|OPTS|FLAGS|STARTUP|BREAKPOINT|PLUGINS|ADDOPTS|CONFIG|CONFIG_PATH|CONFIG_FILE|RC|TOKEN|KEY|SECRET|PASSWORD)"
    r"|LESS.*|MAN.*|MORE|TERMINFO.*|TERMCAP|PERL.*|RUBY.*|GEM.*|NODE_(PATH|OPTIONS|EXTRA.*|REPL.*)|NPM_.*|JAVA_.*|JDK.*"
    r"|_JAVA.*|CLASSPATH|PYTHON(STARTUP|HOME|BREAKPOINT|INSPECT|WARNINGS|USERBASE|EXECUTABLE|PLATLIBDIR|CASEOK)|PYTEST.*"
    r"|PIP_.*|UV_.*|POETRY_.*|VIRTUAL_ENV|CONDA.*|RUST.*C.*|CARGO.*|CC|CXX|CPP|AR|AS|LD|GO[A-Z]*|CGO_.*|MAKE.*|CMAKE.*"
    r"|DOCKER.*|KUBE.*|AWS.*|HTTPS?_.*|ALL_PROXY|NO_PROXY|RIPGREP.*|GREP_.*|TAR_.*|RSYNC.*|ZIP.*|UNZIP.*|GZIP|XZ_.*|BZIP.*",
)
_HARMLESS = re.compile(
    r"LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|COLORTERM|CI|DEBUG|VERBOSE"
    r"|LOG_LEVEL|IFS|PYTHON(DONTWRITEBYTECODE|UNBUFFERED|HASHSEED|IOENCODING|UTF8|FAULTHANDLER|DEVMODE)|NODE_ENV"
    r"|RUST_(BACKTRACE|LOG)|[a-z_][a-z_0-9]*"
)
_SPECIAL_LOWER_CASE = frozenset(
    {"http_proxy", "https_proxy", "all_proxy", "no_proxy", "histchars", "auto_resume", "_"}
)


def names_search_path(assignment: Assignment) -> bool:
    """PYTHONPATH is fine as long as every folder in it is one of the workspace."""
    return assignment.name == "PYTHONPATH"


def is_dangerous(assignment: Assignment) -> bool:
    """Whether the variable can make other programs run, in any mode."""
    name = assignment.name
    if name in _SPECIAL_LOWER_CASE or name.startswith("npm_config_"):
        return True
    if _HARMLESS.fullmatch(name):
        return False
    return _DANGEROUS.fullmatch(name) is not None


def is_harmless(assignment: Assignment) -> bool:
    """Whether the variable surely cannot, so that no mode has to ask."""
    if is_dangerous(assignment):
        return False
    return not assignment.exported or _HARMLESS.fullmatch(assignment.name) is not None
