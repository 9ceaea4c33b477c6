#!/bin/sh
echo kind: ResourceList
