"""A list of hosts: how its entries are written, and which names, ports and addresses they cover."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LONGEST_NAME = 253
_LOCAL_NAME = "localhost"
_NAT64 = "64:ff9b::/96"


@dataclass(frozen=True, slots=True)
class HostEntry:
    """One entry: a name, `*.` and a name for all below it, an address, or a network of addresses.

    Attributes:
        name: in lower case; empty for addresses.
        network: the addresses that are meant; None for names.
        port: the only port that is meant; None for all.
    """

    name: str
    network: "IPv4Network | IPv6Network | None"
    port: int | None

    @property
    def is_of_this_machine(self) -> bool:
        return self.name == _LOCAL_NAME or (self.network is not None and self.network.is_loopback)

    def covers_name(self, name: str, port: int) -> bool:
        if not self.name or self.port not in (None, port):
            return False
        return name.endswith(self.name[1:]) if self.name.startswith("*.") else name == self.name

    def covers_address(self, address: "IPv4Address | IPv6Address", port: int) -> bool:
        return self.network is not None and self.port in (None, port) and address in self.network


def parse_entry(text: str) -> HostEntry:
    """Reads `example.org`, `*.example.org`, `10.0.0.0/8` or `[::1]`, each with `:PORT` if wanted.

    Raises:
        ValueError: it is none of these; the message goes behind the name of the setting.
    """
    written = text.strip()
    if "://" in written:
        raise ValueError(f"needs names of hosts, such as example.org, and no addresses of pages: {text!r}")
    if written in ("", "*"):
        raise ValueError('needs names of hosts; for all of them set sandbox.network = "allow"')
    host, port = _split(written, text)
    network = _network(host)
    if network is None:
        name = plain_name(host.removeprefix("*."))
        if not name:
            raise ValueError(f"has an entry that is no host: {text!r}")
        entry = HostEntry(f"*.{name}" if host.startswith("*.") else name, None, port)
    else:
        entry = HostEntry("", network, port)
    if entry.is_of_this_machine and port is None:
        raise ValueError(f"needs a port for this machine, such as {host}:8000")
    return entry


def plain_name(name: str) -> str:
    """A host's name as it is compared: in lower case, without the last dot, in ASCII; empty for no name."""
    lowered = name.lower().removesuffix(".")
    if not lowered.isascii():
        try:
            lowered = lowered.encode("idna").decode("ascii")
        except UnicodeError:
            return ""
    return lowered if len(lowered) <= _LONGEST_NAME and _NAME.fullmatch(lowered) else ""


def plain_address(text: str) -> "IPv4Address | IPv6Address | None":
    """An address that is written out, brackets and IPv4 in IPv6 taken away; None for anything else."""
    from ipaddress import IPv6Address, ip_address

    try:
        address = ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_public(address: "IPv4Address | IPv6Address") -> bool:
    """Whether an address lies in the internet: not on this machine, nor beside it, nor in a private one."""
    from ipaddress import IPv4Address, IPv6Address, IPv6Network

    if not address.is_global or address.is_multicast or address.is_reserved or address.is_unspecified:
        return isinstance(address, IPv6Address) and _is_public_nat64(address)
    if isinstance(address, IPv6Address):
        inner = address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in IPv6Network(_NAT64):
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        return inner is None or is_public(inner)
    return True


def _is_public_nat64(address: "IPv6Address") -> bool:
    from ipaddress import IPv4Address, IPv6Network

    return address in IPv6Network(_NAT64) and is_public(IPv4Address(int(address) & 0xFFFFFFFF))


class HostList:
    """What `parse_entry` makes of some entries. Nothing is looked up here."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self.entries = tuple(parse_entry(entry) for entry in entries)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def covers(self, host: str, port: int) -> bool:
        """Whether a name or a written address is in the list."""
        address = plain_address(host)
        if address is not None:
            return self.covers_address(address, port)
        name = plain_name(host)
        return bool(name) and any(entry.covers_name(name, port) for entry in self.entries)

    def covers_address(self, address: "IPv4Address | IPv6Address", port: int) -> bool:
        return any(entry.covers_address(address, port) for entry in self.entries)

    def may_lead_to(self, host: str, address: "IPv4Address | IPv6Address", port: int) -> bool:
        """Whether a listed host may have this address: a public one, or one that is listed itself.

        Names are in the hands of others, who could point them at this machine or the network around it.
        """
        if is_public(address) or self.covers_address(address, port):
            return True
        return plain_name(host) == _LOCAL_NAME and address.is_loopback

    def local_ports(self) -> tuple[tuple[str, int], ...]:
        """Host and port of the entries that are about this machine."""
        return tuple(
            (str(entry.network.network_address) if entry.network else entry.name, entry.port)
            for entry in self.entries
            if entry.is_of_this_machine
            and entry.port is not None
            and (entry.network is None or entry.network.num_addresses == 1)
        )


def _split(written: str, text: str) -> tuple[str, int | None]:
    """Host and port; an address with colons has its port behind brackets."""
    if written.startswith("["):
        host, _, rest = written[1:].partition("]")
        port = rest.removeprefix(":") if rest else None
        if rest and not rest.startswith(":"):
            raise ValueError(f"has an entry that is no host: {text!r}")
    elif written.count(":") > 1:
        host, port = written, None
    else:
        host, colon, port = written.partition(":")
        port = port if colon else None
    if port is None:
        return host, None
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"has an entry whose port is no number from 1 to 65535: {text!r}")
    return host, int(port)


def _network(host: str) -> "IPv4Network | IPv6Network | None":
    from ipaddress import ip_network

    try:
        return ip_network(host, strict=False)
    except ValueError:
        return None
