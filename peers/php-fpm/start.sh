#!/bin/bash
# Runs PHP-FPM and nginx with the configuration in folder $1. Stops both on SIGTERM or SIGINT, or when one of
# them exits.
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
trap exit TERM INT
build/php-fpm --fpm-config "$1/fpm.conf" &
build/nginx -p "$1" -e stderr -c "$1/nginx.conf" &
wait -n
