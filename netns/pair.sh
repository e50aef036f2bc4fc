#!/usr/bin/env bash
# The plain `ip` commands that the topology of pair.toml stands for. As root:
#
#     netns/pair.sh up       make it
#     netns/pair.sh down     remove it again
#
# rocemu needs neither this script nor the `ip` command: it asks the kernel for the same, in namespaces of its own. This
# is for reading, and for trying things out by hand.
set -euo pipefail

up() {
    set -x
    ip netns add rocemu-pair-a
    ip netns add rocemu-pair-b
    # An interface is called after the node at its far end. 9300 lets the largest RoCEv2 packet through.
    ip link add name b netns rocemu-pair-a mtu 9300 type veth peer name a netns rocemu-pair-b mtu 9300
    # No addresses, no IPv6: then the kernel itself never sends a frame.
    ip -n rocemu-pair-a link set dev b addrgenmode none up
    ip -n rocemu-pair-b link set dev a addrgenmode none up
}

down() {
    set -x
    # A veth pair goes with the namespace of either end.
    ip netns delete rocemu-pair-a
    ip netns delete rocemu-pair-b
}

case ${1:-} in
up | down)
    if [ "$(id -u)" -ne 0 ]; then
        echo "$0: only root may give names to network namespaces: sudo $0 $1" >&2
        exit 3
    fi
    ;;
esac

case ${1:-} in
up) up ;;
down) down ;;
*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;;
esac
