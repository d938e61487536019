#!/bin/sh
# Prints the sum of the amounts.
tail -n +3 /app/data/sales.csv | awk -F, '{ sum += $2 } END { print sum }'
