#!/bin/bash
set -e
cd /app/site
test "$(git log -1 --format=%s)" = "Use one spelling"
! git grep -q colour HEAD
grep -qx colour notes.txt
