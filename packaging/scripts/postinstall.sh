#!/bin/sh
# Runs after the files are in place, at an installation and at an upgrade. Nothing is started by an installation: the
# operator writes /etc/tenon/tenon.yaml first. A running service continues with the new version.
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart tenon.service
fi
