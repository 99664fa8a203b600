"""Lists of hosts: how entries are read, and what they cover."""

import pytest

from agent.core.hosts import HostList, is_public, parse_entry, plain_address


@pytest.mark.parametrize(
    ("entry", "host", "port", "covered"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "Example.ORG.", 80, True),
        ("example.org", "www.example.org", 443, False),
        ("example.org", "example.org.evil.test", 443, False),
        ("example.org:443", "example.org", 443, True),
        ("example.org:443", "example.org", 22, False),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("*.example.org:8080", "a.example.org", 8080, True),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
        ("xn--bcher-kva.example", "bücher.example", 443, True),
        ("192.0.2.7", "192.0.2.7", 80, True),
        ("192.0.2.7", "::ffff:192.0.2.7", 80, True),
        ("10.0.0.0/8:80", "10.1.2.3", 80, True),
        ("10.0.0.0/8:80", "11.1.2.3", 80, False),
        ("[2001:db8::1]:80", "[2001:db8::1]", 80, True),
        ("127.0.0.1:8000", "127.0.0.1", 8000, True),
        ("127.0.0.1:8000", "127.0.0.1", 8001, False),
        ("localhost:8000", "localhost", 8000, True),
        ("example.org", "", 443, False),
        ("example.org", "a" * 300, 443, False),
    ],
)
def test_an_entry_covers_what_it_says_and_no_more(entry: str, host: str, port: int, covered: bool):
    assert HostList([entry]).covers(host, port) is covered


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("https://example.org", "no addresses of pages"),
        ("*", 'sandbox.network = "allow"'),
        ("", 'sandbox.network = "allow"'),
        ("a b", "is no host"),
        ("*.*", "is no host"),
        ("-x.org", "is no host"),
        ("example.org:0", "port"),
        ("example.org:70000", "port"),
        ("example.org:https", "port"),
        ("[::1]x", "is no host"),
        ("127.0.0.1", "needs a port for this machine"),
        ("localhost", "needs a port for this machine"),
    ],
)
def test_an_entry_that_is_no_host_is_a_mistake_that_says_what_is_wrong(entry: str, said: str):
    with pytest.raises(ValueError, match=said.replace(".", r"\.")):
        parse_entry(entry)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("64:ff9b::808:808", True),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("10.1.1.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.1.1", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("2002:7f00:1::", False),
        ("fe80::1", False),
        ("fd00::1", False),
    ],
)
def test_addresses_around_this_machine_are_not_public(address: str, public: bool):
    found = plain_address(address)
    assert found is not None
    assert is_public(found) is public


def test_a_listed_name_may_not_lead_to_an_address_around_this_machine_that_is_not_listed_itself():
    private = plain_address("10.1.2.3")
    assert private is not None
    assert not HostList(["git.example.org"]).may_lead_to("git.example.org", private, 443)
    assert HostList(["git.example.org", "10.1.2.3"]).may_lead_to("git.example.org", private, 443)
    assert not HostList(["git.example.org", "10.1.2.3:80"]).may_lead_to("git.example.org", private, 443)


def test_the_name_of_this_machine_may_lead_to_this_machine_and_nowhere_else_around():
    own, near = plain_address("127.0.0.1"), plain_address("192.168.0.1")
    assert own is not None
    assert near is not None
    assert HostList(["localhost:80"]).may_lead_to("localhost", own, 80)
    assert not HostList(["localhost:80"]).may_lead_to("localhost", near, 80)


def test_ports_of_this_machine_are_told_apart_from_other_hosts():
    entries = ["example.org:80", "127.0.0.1:1", "localhost:2", "[::1]:3", "127.0.0.0/8:4"]
    assert HostList(entries).local_ports() == (("127.0.0.1", 1), ("localhost", 2), ("::1", 3))


def test_an_empty_list_covers_nothing():
    assert not HostList()
    assert not HostList().covers("example.org", 443)
