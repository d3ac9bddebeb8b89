#!/bin/sh
# Root starts Chromium as a user without rights: Chromium has no sandbox for root. Its profile is made by Playwright.
for argument in "$@"; do
    case $argument in
        --user-data-dir=*) HOME=${argument#--user-data-dir=} && chown -R 65534:65534 "$HOME" ;;
    esac
done
export HOME
exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all -- chromium "$@"
