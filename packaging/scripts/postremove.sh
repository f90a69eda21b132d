#!/bin/sh
# Runs after the files are removed, and at an upgrade of dpkg after the new ones are in place. Stores stay in
# /var/lib/tenon, except at a purge of dpkg. DPKG_ROOT is the root of an installation into a folder. A systemd that
# does not answer does not stop dpkg half way.
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload || echo 'tenon: systemd still has the old units: systemctl daemon-reload' >&2
fi
if [ "${1:-}" = purge ]; then
  for folder in /var/lib /var/lib/private /var/cache /var/cache/private; do
    rm -rf "${DPKG_ROOT:-}$folder/tenon"
  done
fi
