"""Makes random shell command lines out of stub programs, from plain ones to contrived ones."""

import random
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

PROGRAMS = tuple(f"p{number}" for number in range(10))
ODD_LINES: list[str] = tomllib.loads(
    (Path(__file__).parent / "cases" / "odd_lines.toml").read_text(encoding="utf-8")
)["lines"]
WRAPPERS = ("env", "timeout", "xargs", "nice", "nohup", "stdbuf", "setsid", "find", "bash", "sh")


class LineMaker:
    """Lines from a seeded random source, so that a failing one comes again."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.depth = 0
        self.functions = 0

    def line(self) -> str:
        self.depth = 0
        return self._statement()

    def _statement(self) -> str:
        self.depth += 1
        choices: list[Callable[[], str]] = [self._simple, self._simple]
        if self.depth < 4:
            choices += [
                self._sequence,
                self._pipeline,
                self._group,
                self._conditional,
                self._loop,
                self._case,
                self._wrapped,
                self._nested_shell,
                self._eval,
                self._heredoc,
                self._redirected,
                self._function,
                self._odd,
                self._comment,
            ]
        made = self.random.choice(choices)()
        self.depth -= 1
        return made

    def _name(self) -> str:
        name = self.random.choice(PROGRAMS)
        spellings = [name] * 6
        spellings += [
            f'p""{name[1]}',
            f"\\{name}",
            f"$'{name}'",
            f'"{name}"',
            f"'p'{name[1]}",
            f"p\\{name[1]}",
        ]
        spellings += [
            f"$'\\x70{name[1]}'",
            f"${{x:-{name}}}",
            f"$(echo {name})",
            f"{{{name},y}}",
            f"p\\\n{name[1]}",
        ]
        return self.random.choice(spellings)

    def _argument(self) -> str:
        inner = self._simple() if self.depth > 3 else self._statement()
        return self.random.choice(
            [
                "a",
                "-x",
                "'b c'",
                '"d $e"',
                "\\;",
                "\\#",
                "#",
                "a#b",
                "$#",
                "{}",
                "~",
                "'#'",
                "{a,b}",
                "a\\ b",
                "$'\\n'",
                '"\\$(p9)"',
                "'$(p9)'",
                "$((1 + 2))",
                "*",
                "[a]",
                "!",
                '"x"',
                f"$({inner})",
                f'"$({inner})"',
                f"<({inner})",
                f"`{self._simple()}`",
                f"${{y:-$({inner})}}",
                f"$((1 + $({inner})))",
                f'"${{y:-`{self._name()}`}}"',
                "=",
                "x=1",
            ]
        )

    def _simple(self) -> str:
        self.depth += 1
        count = self.random.randrange(3) if self.depth < 6 else 0
        words = [self._name(), *(self._argument() for _ in range(count))]
        self.depth -= 1
        if self.random.random() < 0.1:
            words.insert(0, self.random.choice(["V=1", f"V=$({self._name()})", "V="]))
        return " ".join(words)

    def _sequence(self) -> str:
        operator = self.random.choice(
            [";", " ;", "\n", " && ", " || ", " & ", "&&", ";\n", " \\\n&& ", " # c\n"]
        )
        return f"{self._statement()}{operator}{self._statement()}"

    def _pipeline(self) -> str:
        operator = self.random.choice([" | ", "|", " |& ", " |\n"])
        return f"{self._statement()}{operator}{self._statement()}"

    def _group(self) -> str:
        return self.random.choice(["( {} )", "({})", "{{ {}; }}", "! {}", "{{ {}\n}}", "time {}"]).format(
            self._statement()
        )

    def _conditional(self) -> str:
        test = self.random.choice(
            [self._simple(), "[ -f a ]", '[[ "$x" == a* ]]', f"[ -n $({self._name()}) ]"]
        )
        return f"if {test}; then {self._statement()}; else {self._statement()}; fi"

    def _loop(self) -> str:
        head = self.random.choice(
            ["for i in a b", f"for i in $({self._simple()})", f"while {self._name()} && false"]
        )
        return f"{head}; do {self._statement()}; done"

    def _case(self) -> str:
        word = self.random.choice(["a", "$x", f"$({self._name()})"])
        return f"case {word} in a|b) {self._statement()};; *) {self._statement()};; esac"

    def _wrapped(self) -> str:
        prefix = self.random.choice(
            [
                "env",
                "env A=1",
                "env -i PATH=$PATH",
                "timeout 5",
                "timeout -k 1 5",
                "nice",
                "nice -n 1",
                "nohup",
                "setsid -w",
                "command",
                "exec",
                "builtin command",
                "echo a | xargs",
                "echo a | xargs -n1",
                "echo a | xargs -I{}",
                "echo a | xargs --replace",
                "echo a | xargs --max-lines",
                "echo a | xargs -I p9",
                "stdbuf -o0",
                "find . -maxdepth 0 -exec",
                "time",
                "time -p",
                "env -u A nice env B=2",
            ]
        )
        suffix = " {} \\;" if prefix.startswith("find") else ""
        return f"{prefix} {self._name()} {self.random.choice(['', 'a', '-x'])}{suffix}"

    def _nested_shell(self) -> str:
        flag = self.random.choice(["-c", "-ec", "-c --", "-e -c", "-o pipefail -c"])
        return f"bash {flag} {shlex.quote(self._statement())}"

    def _eval(self) -> str:
        inner = self._statement()
        return self.random.choice(
            [f"eval {shlex.quote(inner)}", f"eval {self._name()}", f"trap {shlex.quote(inner)} EXIT"]
        )

    def _heredoc(self) -> str:
        mark = self.random.choice(["E", "'E'", '"E"', "\\E"])
        command = self.random.choice([self._name(), "bash", "bash -s", "cat | bash", "env bash"])
        body = self.random.choice(
            [self._simple(), f"$({self._name()})", f"`{self._name()}`", f"\\$({self._name()})", "#"]
        )
        after = self.random.choice(
            ["", f"; {self._name()}", f" && {self._name()}", f" | {self._name()}", " > out"]
        )
        text = f"{command} <<{mark}{after}\n{body}\nE\n{self._name()}"
        return self.random.choice([text, text, f"bash <<< {shlex.quote(self._simple())}"])

    def _redirected(self) -> str:
        redirection = self.random.choice(
            ["> out", "2>&1", "< /dev/null", "&> out", ">> out 2>&1", f"> >({self._name()})"]
        )
        return f"{self._statement()} {redirection}"

    def _function(self) -> str:
        self.functions += 1  # a name of its own, because a function that calls itself would never end
        return f"f{self.functions}() {{ {self._statement()}; }}; f{self.functions} a"

    def _comment(self) -> str:
        comment = self.random.choice(["#", "# ;", "#(", f" # $({self._name()})"])
        return f"{self._simple()} {comment}\n{self._statement()}"

    def _odd(self) -> str:
        line = self.random.choice(ODD_LINES)
        return line.replace("OTHER", self._simple()).replace("NAME", self.random.choice(PROGRAMS))
