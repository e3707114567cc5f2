# shellcheck shell=bash
# Sourced by ./test and .ci/run: puts cargo on PATH and sees to it that the programs which the build
# and the tests call are there. On Debian and Ubuntu it installs what is missing, as root or with
# sudo; elsewhere it says what to install and fails.

# What must be there | its packages on Debian and Ubuntu | what it is for
# The first column is a program on PATH or, with a slash in it, a file pattern.
tools='
git     | git           | worktrees are made and removed by the git program
cc      | gcc libc6-dev | linking, and compiling the bundled SQLite
timeout | coreutils     | the bound on the time
spin    | spin          | the Promela twin of the models is checked by another checker
/usr/lib/postgresql/*/bin/initdb | postgresql | servers that the tests of the PostgreSQL store start
pgbouncer | pgbouncer   | the pooler that these tests put between
'

# A bare PATH lacks cargo, and the sbin folders without which the package tools fail.
find_cargo() {
  local home=${CARGO_HOME:-${HOME:-~}/.cargo}
  case ":$PATH:" in
    *":$home/bin:"*) ;;
    *) [ -x "$home/bin/cargo" ] && PATH=$home/bin:$PATH ;;
  esac
  export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
  if ! command -v cargo >/dev/null; then
    echo "cargo is missing: it is neither on PATH nor in $home/bin." >&2
    echo "Install a Rust toolchain (rustup gives one), or say where it is with CARGO_HOME." >&2
    return 1
  fi
  if ! cargo --version; then
    echo "$(command -v cargo) does not run. If it comes from rustup: rustup default stable" >&2
    return 1
  fi
}

present() {
  case $1 in
    */*) compgen -G "$1" >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

# Prints the rows of the table whose first column is not there.
missing_tools() {
  local what packages why
  while IFS='|' read -r what packages why; do
    # Reading a cell once more drops the blanks around it.
    read -r what <<<"$what"
    read -r packages <<<"$packages"
    [ -z "$what" ] || present "$what" || echo "$what|$packages|$why"
  done <<<"$tools"
}

install_tools() {
  local missing what packages why all=() as_root=()
  missing=$(missing_tools)
  [ -n "$missing" ] || return 0
  echo "Missing:"
  while IFS='|' read -r what packages why; do
    echo "  $what (package: $packages):$why"
    # shellcheck disable=SC2206  # one cell may name several packages
    all+=($packages)
  done <<<"$missing"

  if ! command -v apt-get >/dev/null; then
    echo "This is neither Debian nor Ubuntu: install these yourself and start again." >&2
    return 1
  fi
  if [ "$(id -u)" -ne 0 ]; then
    # -n: a password prompt would wait for somebody who is not there.
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
      echo "Neither root nor sudo without a password. As root, run:" >&2
      echo "  apt-get update && apt-get install -y --no-install-recommends ${all[*]}" >&2
      return 1
    fi
    as_root=(sudo -n)
  fi
  local apt=("${as_root[@]}" timeout --kill-after=20 900 env DEBIAN_FRONTEND=noninteractive
    apt-get -o DPkg::Lock::Timeout=300)
  # An update that fails in part may still have brought what is needed.
  "${apt[@]}" update || echo "apt-get update failed; trying to install all the same." >&2
  if ! "${apt[@]}" install -y --no-install-recommends "${all[@]}"; then
    echo "apt-get could not install: ${all[*]}" >&2
    return 1
  fi
  hash -r
  missing=$(missing_tools)
  [ -z "$missing" ] || { printf 'Still missing after the installation:\n%s\n' "$missing" >&2; return 1; }
}
