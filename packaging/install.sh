#!/bin/sh
# Installs tenon of a release into a folder of yours, without root:
#
#   curl -fsSL https://github.com/tenonhq/tenon/releases/latest/download/install.sh | sh
#   sh install.sh --version v1.2.3 --to ~/bin
#
# It downloads the archive of this platform, compares it with the checksums of the release, checks the signature of
# the checksums, and only then puts the binary in place, in one step. Nothing else is written. Variables:
#
#   TENON_DOWNLOADS   where releases are, for a mirror   (https://github.com/tenonhq/tenon/releases)
#   TENON_SIGNERS     file of the keys that may sign, in the form of ssh-keygen(1), ALLOWED SIGNERS
#
# Everything is in functions: a script of which only the beginning arrived does nothing.
set -eu

# The keys that may sign a release, in the form of ssh-keygen(1). It is empty until the maintainers publish the first.
signers=''

fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# download writes what is at a URL into a file. From an address with https, only https is followed.
download() {
  case $1 in
  https://*) only='=https' ;;
  *) only='=http,https' ;;
  esac
  if has curl; then
    curl -fsSL --proto "$only" --retry 2 --max-time 600 -o "$2" "$1"
  else
    wget -q --tries=3 --timeout=60 -O "$2" "$1"
  fi || fail "$1 cannot be downloaded"
}

# latest prints the version of the newest release, which the address of the latest one leads to.
latest() {
  if has curl; then
    to=$(curl -fsSL --max-time 60 -o /dev/null -w '%{url_effective}' "$downloads/latest") || to=''
  else
    to=$(wget -q -S --spider --timeout=60 "$downloads/latest" 2>&1 | sed -n 's/^ *[Ll]ocation: *\([^ ]*\).*/\1/p' | tail -n 1) || to=''
  fi
  printf '%s' "${to##*/}" | tr -d '\r'
}

sum_of() {
  if has sha256sum; then
    sha256sum "$1"
  elif has shasum; then
    shasum -a 256 "$1"
  else
    openssl dgst -sha256 -r "$1"
  fi | cut -d ' ' -f 1
}

# check_signature checks who signed the checksums. With keys, an unsigned release is refused.
check_signature() {
  if [ -n "${TENON_SIGNERS:-}" ]; then
    cp "$TENON_SIGNERS" "$work/signers"
  elif [ -n "$signers" ]; then
    printf '%s\n' "$signers" >"$work/signers"
  else
    printf 'install.sh: no signature was checked: this script has no key\n' >&2
    return
  fi
  has ssh-keygen || fail 'ssh-keygen (OpenSSH 8 or newer) is needed to check the signature'
  download "$from/checksums.txt.sig" "$work/checksums.txt.sig"
  ssh-keygen -Y verify -f "$work/signers" -I release@tenon -n tenon-release -s "$work/checksums.txt.sig" \
    <"$work/checksums.txt" >/dev/null 2>&1 || fail 'the signature of checksums.txt is not of a known key; nothing was installed'
}

platform() {
  case $(uname -s) in
  Linux) system=linux ;;
  Darwin) system=darwin ;;
  *) fail "there is no archive for $(uname -s); on Windows use scoop or winget" ;;
  esac
  case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "there is no archive for $(uname -m)" ;;
  esac
}

main() {
  downloads=${TENON_DOWNLOADS:-https://github.com/tenonhq/tenon/releases}
  version='' to=''
  while [ $# -gt 0 ]; do
    case $1 in
    --version) version=${2:?} && shift 2 ;;
    --to) to=${2:?} && shift 2 ;;
    *) fail "unknown argument $1; there are --version VERSION and --to FOLDER" ;;
    esac
  done
  if [ -z "$to" ]; then
    if [ "$(id -u)" = 0 ]; then to=/usr/local/bin; else to=${HOME:?}/.local/bin; fi
  fi
  platform
  has curl || has wget || fail 'curl or wget is needed'
  has sha256sum || has shasum || has openssl || fail 'sha256sum, shasum or openssl is needed'
  [ -n "$version" ] || version=$(latest)
  case $version in
  v[0-9]*) ;;
  [0-9]*) version=v$version ;;
  *) fail "$downloads/latest names no version; name one with --version" ;;
  esac
  case $version in *[!A-Za-z0-9.+-]*) fail "$version is no version" ;; esac

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT TERM HUP
  from=$downloads/download/$version
  archive=tenon_${version#v}_${system}_$arch.tar.gz
  download "$from/checksums.txt" "$work/checksums.txt"
  check_signature
  want=$(sed -n "s/^\([0-9a-f]\{64\}\)  $archive\$/\1/p" "$work/checksums.txt")
  [ -n "$want" ] || fail "checksums.txt of $version has no line for $archive"
  download "$from/$archive" "$work/$archive"
  [ "$(sum_of "$work/$archive")" = "$want" ] || fail "$archive has another checksum than the release says; nothing was installed"
  tar -xzf "$work/$archive" -C "$work" tenon
  "$work/tenon" version >"$work/says" || fail 'the binary does not run here; nothing was installed'

  # A rename within one folder: a running tenon keeps its file.
  mkdir -p "$to"
  mv "$work/tenon" "$to/.tenon.new.$$"
  chmod 755 "$to/.tenon.new.$$"
  mv -f "$to/.tenon.new.$$" "$to/tenon"
  printf '%s is in %s\n' "$(cat "$work/says")" "$to/tenon"
  case :$PATH: in
  *":$to:"*) ;;
  *) printf 'add it to PATH:  export PATH="%s:$PATH"\n' "$to" ;;
  esac
}

main "$@"
