package main

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the kernel kill the child when this process dies, however it does.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
