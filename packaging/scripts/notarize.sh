#!/bin/sh
# Signs a binary of macOS and has Apple notarize it, on any system: notarize.sh FILE. It needs rcodesign
# (https://gregoryszorc.com/docs/apple-codesign) and, from Apple's developer programme:
#
#   TENON_APPLE_P12       file of the certificate "Developer ID Application", with its key
#   TENON_APPLE_P12_PASS  file of its password
#   TENON_APPLE_API_KEY   file of the App Store Connect API key that rcodesign encode-app-store-connect-api-key writes
#
# internal/release runs it for each binary before it packs it: release -sign packaging/scripts/notarize.sh all …
# A ticket cannot be stapled to a bare binary: macOS asks Apple at the first start.
set -eu
file=${1:?want: notarize.sh FILE}
for name in TENON_APPLE_P12 TENON_APPLE_P12_PASS TENON_APPLE_API_KEY; do
  eval "value=\${$name:-}"
  [ -r "$value" ] || { printf 'notarize.sh: %s has to name a readable file\n' "$name" >&2; exit 1; }
done
command -v rcodesign >/dev/null 2>&1 || { echo 'notarize.sh: rcodesign is needed' >&2; exit 1; }
command -v zip >/dev/null 2>&1 || { echo 'notarize.sh: zip is needed' >&2; exit 1; }
rcodesign sign --p12-file "$TENON_APPLE_P12" --p12-password-file "$TENON_APPLE_P12_PASS" \
  --code-signature-flags runtime "$file"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
zip -q -j "$work/tenon.zip" "$file"
rcodesign notary-submit --api-key-file "$TENON_APPLE_API_KEY" --wait "$work/tenon.zip"
