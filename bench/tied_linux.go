package main

import "syscall"

// tied is for children that must not outlive us: their group is their own, and the
// kernel kills them when the thread that started them ends.
func tied() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
