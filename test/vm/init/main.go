// Command init is the first process of the virtual machine: it mounts what tests
// expect of a Linux machine, loads the kernel's modules, runs the tests, says how
// they ended, and turns the machine off.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/vm/internal/boot"
	"github.com/dovetail-dra/dovetail/test/vm/internal/ramdisk"
)

// Arguments is the file with the arguments of the tests, one a line.
const (
	tests     = "/tests"
	arguments = "/arguments"
)

func main() {
	code, err := start()
	if err != nil {
		fmt.Println("init:", err)
		code = 1
	}
	if out, err := line(); err == nil {
		_, _ = out.WriteString(boot.Exit(code))
		_ = out.Close() // waits until all has been sent
	}
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("init: power off:", err)
	}
}

func start() (int, error) {
	if err := mount(); err != nil {
		return 0, err
	}
	if err := loadModules(); err != nil {
		return 0, err
	}
	return runTests()
}

func mount() error {
	for _, m := range []struct{ kind, at string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"},
		{"cgroup2", "/sys/fs/cgroup"},
	} {
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s at %s: %w", m.kind, m.at, err)
		}
	}
	return nil
}

func loadModules() error {
	order, err := os.Open("/" + ramdisk.ModuleOrder)
	if err != nil {
		return err
	}
	defer func() { _ = order.Close() }()
	for lines := bufio.NewScanner(order); lines.Scan(); {
		name, parameters, _ := strings.Cut(lines.Text(), " ")
		f, err := os.Open(filepath.Join("/"+ramdisk.ModuleDir, name+".ko"))
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), parameters, 0)
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("load module %s: %w", name, err)
		}
	}
	return nil
}

// runTests runs the tests with their output on the second serial line.
func runTests() (int, error) {
	args, err := os.ReadFile(arguments)
	if err != nil {
		return 0, err
	}
	out, err := line()
	if err != nil {
		return 0, err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(tests, strings.Split(strings.TrimRight(string(args), "\n"), "\n")...)
	cmd.Dir = "/tmp"
	cmd.Env = []string{"PATH=/bin", "HOME=/tmp"}
	cmd.Stdout, cmd.Stderr = out, out
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}

// line opens the serial line that leads to the launcher, and has it carry what is
// written as it is.
func line() (*os.File, error) {
	f, err := os.OpenFile("/dev/ttyS1", os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	mode, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err == nil {
		mode.Oflag &^= unix.OPOST
		err = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, mode)
	}
	return f, err
}
