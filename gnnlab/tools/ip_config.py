"""Another name of :mod:`gnnlab.ip_config`."""

from gnnlab.ip_config import IP_CONFIG_HELP, Host, names_of, read_ip_config

__all__ = ["IP_CONFIG_HELP", "Host", "names_of", "read_ip_config"]
