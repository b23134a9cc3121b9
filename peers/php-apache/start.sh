#!/bin/bash
# Runs Apache with the configuration in folder $1. Stops it with SIGKILL: a graceful shutdown of 400
# processes with PHP inside takes seconds, and they have nothing to save.
set -m # a separate process group for Apache, so that only this script gets a signal to its group
build/apache2 -D FOREGROUND -f "$1/apache.conf" &
trap 'kill -KILL -- -$!' TERM INT
wait $!
