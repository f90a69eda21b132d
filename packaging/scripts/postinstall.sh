#!/bin/sh
# Runs after the files are in place, at an installation and at an upgrade. Nothing is started by an installation: the
# operator writes /etc/tenon/tenon.yaml first. A running service continues with the new version. A service that does not
# start again is the operator's to repair; the package is installed all the same.
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload || echo 'tenon: systemd did not read the new units: systemctl daemon-reload' >&2
  systemctl try-restart tenon.service ||
    echo 'tenon: the service did not start again, see: systemctl status tenon.service' >&2
fi
