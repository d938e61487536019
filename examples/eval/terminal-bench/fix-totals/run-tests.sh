#!/bin/bash
set -e
test "$(sh /app/src/totals.sh)" = 50
cmp /app/data/sales.csv /tests/expected.csv
test -d /app/out
