#!/bin/sh
touch /tmp/regatta-test-must-not-run
