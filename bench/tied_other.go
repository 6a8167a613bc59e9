//go:build !linux

package main

import "syscall"

func tied() *syscall.SysProcAttr { return group() }

func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
