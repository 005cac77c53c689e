#!/bin/bash
# Installs the Debian packages that a target needs and that are missing. As root
# it does so through apt-get; otherwise, and elsewhere, it says what to install.
# usage: hack/setup.sh PACKAGE...
set -euo pipefail

if ! command -v dpkg-query >/dev/null; then
  # Not Debian: only look for what everything here needs.
  if ! command -v gcc >/dev/null; then
    echo "gcc is missing (the agent uses cgo). Install a C compiler; this system's counterpart of: $*" >&2
    exit 1
  fi
  exit 0
fi

missing=()
for package in "$@"; do
  state=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null || true)
  grep -qx installed <<<"$state" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "These Debian packages are missing: ${missing[*]}" >&2
  echo "Install them with: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "installing Debian packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "apt-get could not install ${missing[*]}; its last words are above" >&2
  exit 1
fi
