#!/bin/sh
# Runs before the files are removed. $1 tells a removal from others: dpkg says "upgrade", "failed-upgrade" of the new
# version where the old one's script fails, and "deconfigure" where another package takes this one's place for a time;
# rpm counts the versions that stay. pacman and apk pass a version, and run this at a removal only.
set -e
case "${1:-remove}" in
upgrade | failed-upgrade | deconfigure) exit 0 ;;
0 | *[!0-9]*) ;;
*) exit 0 ;;
esac
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl disable --now tenon.socket tenon.service ||
    echo 'tenon: the service did not stop, see: systemctl status tenon.service' >&2
fi
