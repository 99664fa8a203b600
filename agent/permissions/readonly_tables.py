"""Options of programs that only read, as far as they keep them so."""

from agent.permissions.options import Options, options
from agent.permissions.words import names

READING_FILES: dict[str, Options] = {
    "basename": options(flags="az", values="s", long_flags="multiple zero", long_values="suffix"),
    "cat": options(
        flags="AbeEnstTuv", long_flags="number number-nonblank show-all show-ends show-tabs squeeze-blank"
    ),
    "cksum": options(flags="btz", long_flags="binary ignore-missing quiet status strict tag text warn zero"),
    "cmp": options(
        flags="bls",
        values="in",
        long_flags="print-bytes quiet silent verbose",
        long_values="bytes ignore-initial",
    ),
    "column": options(
        flags="tx",
        values="sco",
        long_flags="table",
        long_values="output-separator separator",
    ),
    "comm": options(
        flags="123z",
        long_flags="check-order nocheck-order total zero-terminated",
        long_values="output-delimiter",
    ),
    "cut": options(
        flags="snz",
        values="bcdf",
        long_flags="complement only-delimited",
        long_values="bytes characters delimiter fields output-delimiter",
    ),
    "df": options(
        flags="ahHiklmPT",
        values="tx",
        long_flags="all human-readable inodes portability print-type si total",
        long_values="exclude-type type",
    ),
    "diff": options(
        flags="abBcdeEinNpqstTuwyZ",
        values="CUFIxW",
        long_flags=(
            "brief color context ed ignore-all-space ignore-blank-lines ignore-case"
            " ignore-space-change ignore-trailing-space left-column minimal new-file"
            " no-dereference normal report-identical-files show-c-function side-by-side"
            " strip-trailing-cr suppress-common-lines text unified"
        ),
        long_values="exclude ignore-matching-lines label width",
        numbers=True,
    ),
    "dirname": options(flags="z", long_flags="zero"),
    "du": options(
        flags="abchHklmsSx0",
        values="dBt",
        long_flags="all apparent-size bytes human-readable one-file-system si summarize total",
        long_values="block-size exclude max-depth threshold",
    ),
    "expand": options(flags="i", values="t", long_flags="initial", long_values="tabs"),
    "file": options(
        flags="bciIhLNnkprs0",
        values="FP",
        long_flags="brief dereference keep-going mime mime-encoding mime-type no-dereference",
    ),
    "fold": options(flags="bs", values="w", long_flags="bytes spaces", long_values="width"),
    "head": options(
        flags="qvz",
        values="nc",
        long_flags="quiet silent verbose zero-terminated",
        long_values="bytes lines",
        numbers=True,
    ),
    "join": options(
        flags="iz",
        values="12aejotv",
        long_flags="check-order header ignore-case nocheck-order zero-terminated",
    ),
    "ls": options(
        flags="aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ1",
        values="ITw",
        long_flags=(
            "all almost-all author classify color dereference-command-line directory escape"
            " file-type format full-time group-directories-first hide-control-chars human-readable"
            " ignore-backups inode kibibytes literal no-group numeric-uid-gid quote-name recursive"
            " reverse show-control-chars si size sort time zero"
        ),
        long_values="block-size hide ignore indicator-style quoting-style tabsize time-style width",
    ),
    "md5sum": options(flags="btz", long_flags="binary ignore-missing quiet status strict tag text warn zero"),
    "nl": options(
        flags="p",
        values="bdfhilnsvw",
        long_flags="no-renumber",
        long_values="body-numbering number-format number-separator number-width",
    ),
    "nproc": options(long_flags="all", long_values="ignore"),
    "od": options(
        flags="abcdfhiloszxvw",
        values="AjNt",
        long_flags="output-duplicates width",
        long_values="address-radix format read-bytes skip-bytes",
        numbers=True,
    ),
    "paste": options(flags="sz", values="d", long_flags="serial zero-terminated", long_values="delimiters"),
    "readlink": options(
        flags="femnqsvz",
        long_flags="canonicalize canonicalize-existing canonicalize-missing no-newline verbose",
    ),
    "realpath": options(
        flags="eEmLPqsz",
        long_flags="canonicalize-existing canonicalize-missing logical physical quiet strip",
        long_values="relative-base relative-to",
    ),
    "rev": options(),
    "sha1sum": options(
        flags="btz", long_flags="binary ignore-missing quiet status strict tag text warn zero"
    ),
    "sha256sum": options(
        flags="btz", long_flags="binary ignore-missing quiet status strict tag text warn zero"
    ),
    "sha512sum": options(
        flags="btz", long_flags="binary ignore-missing quiet status strict tag text warn zero"
    ),
    "sort": options(
        flags="bdfgiMhnRrVcCmsuz",
        values="kt",
        long_flags=(
            "check dictionary-order general-numeric-sort human-numeric-sort ignore-case"
            " ignore-leading-blanks ignore-nonprinting merge month-sort numeric-sort reverse"
            " stable unique version-sort zero-terminated"
        ),
        long_values="field-separator key sort",
    ),
    "stat": options(
        flags="Lftx", values="c", long_flags="dereference file-system terse", long_values="format printf"
    ),
    "strings": options(
        flags="afw", values="ntesT", long_flags="all print-file-name", long_values="bytes encoding radix"
    ),
    "tac": options(flags="br", values="s", long_flags="before regex", long_values="separator"),
    "tail": options(
        flags="fFqvz",
        values="ncs",
        long_flags="follow quiet silent verbose zero-terminated",
        long_values="bytes lines pid",
        numbers=True,
    ),
    "tree": options(
        flags="adfipsugDFqNQrtvxhCnAS",
        values="LPI",
        long_flags="dirsfirst du filesfirst gitignore matchdirs noreport prune si sort",
        long_values="charset filelimit",
    ),
    "wc": options(flags="clLmw", long_flags="bytes chars lines max-line-length words", long_values="total"),
    "which": options(flags="as", long_flags="all"),
}
"""Every operand is a file."""

WITHOUT_FILES: dict[str, Options] = {
    "date": options(flags="uRI", long_flags="iso-8601 rfc-3339 rfc-email universal utc"),
    "expr": options(),
    "groups": options(),
    "id": options(flags="agGnruz"),
    "seq": options(flags="w", values="fs", long_flags="equal-width", long_values="format separator"),
    "sleep": options(),
    "tr": options(flags="cCdst", long_flags="complement delete squeeze-repeats truncate-set1"),
    "type": options(flags="afptP"),
    "uname": options(
        flags="asnrvmpio",
        long_flags="all kernel-name kernel-release kernel-version machine nodename operating-system",
    ),
    "uptime": options(flags="ps"),
    "wait": options(),
    "whoami": options(),
}
"""No operand is a file."""

GREP = options(
    flags="aAbcEFGHhiIlLnoPqrsTUuvwxyzZ",
    values="ABCDdem",
    long_flags=(
        "basic-regexp byte-offset color colour count extended-regexp files-with-matches"
        " files-without-match fixed-strings ignore-case initial-tab invert-match line-buffered"
        " line-number line-regexp no-filename no-ignore-case no-messages null null-data"
        " only-matching perl-regexp quiet recursive silent text with-filename word-regexp"
    ),
    long_values=(
        "after-context before-context binary-files context directories exclude exclude-dir"
        " include label max-count regexp"
    ),
    numbers=True,
)
RG = options(
    flags="abcFHhiIlnNoPpqsSUuvVwx0.",
    values="AeBCdEgjmMrtT",
    long_flags=(
        "after-context auto-hybrid-regex before-context block-buffered byte-offset"
        " case-sensitive column count count-matches crlf debug files files-with-matches"
        " files-without-match fixed-strings glob-case-insensitive heading hidden ignore-case"
        " include-zero invert-match json line-buffered line-number line-regexp"
        " max-columns-preview mmap multiline multiline-dotall no-config no-filename no-heading"
        " no-ignore no-ignore-vcs no-line-number no-messages null null-data one-file-system"
        " only-matching passthru pcre2 pretty quiet smart-case sort-files stats text trim"
        " type-list unicode unrestricted version vimgrep with-filename word-regexp"
    ),
    long_values=(
        "after-context before-context color colors context context-separator dfa-size-limit"
        " encoding engine field-context-separator glob iglob max-columns max-count max-depth"
        " max-filesize path-separator regexp replace sort sortr threads type type-not"
    ),
)
SED = options(
    flags="nErsuz",
    values="el",
    long_flags="debug null-data posix quiet regexp-extended sandbox separate silent unbuffered",
    long_values="expression line-length",
)
JQ = options(
    flags="ceMCSrjans",
    long_flags=(
        "ascii-output color-output compact-output exit-status join-output monochrome-output"
        " null-input raw-input raw-output seq slurp sort-keys stream tab"
    ),
)
UNIQ = options(
    flags="cdDiuz",
    values="fsw",
    long_flags="count ignore-case repeated unique zero-terminated",
    long_values="check-chars skip-chars skip-fields",
)

ANY_ARGUMENTS = names(": echo false true")
"""What they are given makes no difference."""

ONLY_VERSION = names("bash clang cmake g++ gcc java make node perl python python3 ruby rustc")
"""With `--version` as the only argument."""

FIND_FLAGS = names(
    "! ( ) , -a -and -daystart -depth -empty -executable -false -ls -mount -nogroup -noleaf -not"
    " -nouser -o -or -print -print0 -prune -quit -readable -true -writable -xdev"
)
FIND_VALUES = names(
    "-amin -atime -cmin -ctime -fstype -gid -group -iname -inum -ipath -iregex -iwholename -links"
    " -maxdepth -mindepth -mmin -mtime -name -path -perm -printf -regex -regextype -size -type -uid"
    " -used -user -wholename -xtype"
)
FIND_FILES = names("-anewer -cnewer -newer -samefile")
