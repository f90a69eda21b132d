#!/bin/sh
# Runs after the files are removed. Stores stay in /var/lib/tenon, except at a purge of dpkg. DPKG_ROOT is
# the root of an installation into a folder.
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "${1:-}" = purge ]; then
  for folder in /var/lib /var/lib/private /var/cache /var/cache/private; do
    rm -rf "${DPKG_ROOT:-}$folder/tenon"
  done
fi
