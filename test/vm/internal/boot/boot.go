// Package boot runs the virtual machine once: with QEMU's software emulation, to
// the end or to a limit of time.
package boot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/test/vm/internal/kit"
	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// Machine is what is booted.
type Machine struct {
	Kit     kit.Kit
	Ramdisk string
	Logs    string        // folder for console.log and qemu.log
	Limit   time.Duration // from the start of QEMU
}

// ErrStalled is wrapped where the guest had not ended at the limit. With two
// emulated processors that happens now and then; another try is worth it.
var ErrStalled = errors.New("the guest did not end in time")

// exit is the last line that the guest's init writes for us, with the exit code
// of the tests.
const exit = "=== exit "

// Exit is the line for an exit code.
func Exit(code int) string { return fmt.Sprintf("%s%d\n", exit, code) }

// Run boots the machine and copies what the tests say to out, line by line. It
// returns the exit code of the tests.
func (m Machine) Run(ctx context.Context, out io.Writer) (code int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.Limit, fmt.Errorf("%w (%s)", ErrStalled, m.Limit))
	defer cancel()
	log, err := os.Create(filepath.Join(m.Logs, "qemu.log"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()

	program, args, env := m.Kit.QEMU()
	cmd := exec.CommandContext(ctx, program, append(args, m.arguments()...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = log
	// It ends with us, however we end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // whose end Pdeathsig is about
	defer runtime.UnlockOSThread()
	said, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	code, ended, copyErr := copyLines(out, said)
	waitErr := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("%w; the end of its console:\n%s", context.Cause(ctx), m.console())
	case copyErr != nil:
		return 0, copyErr
	case waitErr != nil:
		return 0, fmt.Errorf("QEMU: %w; see %s", waitErr, log.Name())
	case !ended:
		return 0, fmt.Errorf("the guest ended before its tests did; the end of its console:\n%s", m.console())
	}
	return code, nil
}

// arguments are QEMU's. The first serial line is the console, the second is the
// tests'; the third leads to QEMU's own monitor, so that tests can pull cables out (QEMU
// is both ends of the socket). A single thread for both processors, since two stall more
// often. A panic or an oops ends the guest.
func (m Machine) arguments() []string {
	monitor := filepath.Join(m.Logs, "monitor")
	return append(topology.Arguments(),
		"-accel", "tcg,thread=single", "-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "file:"+filepath.Join(m.Logs, "console.log"), "-serial", "stdio",
		"-chardev", "socket,id=monitor,path="+monitor+",server=on,wait=off", "-mon", "chardev=monitor,mode=control",
		"-chardev", "socket,id=hands,path="+monitor, "-serial", "chardev:hands",
		"-kernel", m.Kit.Kernel(), "-initrd", m.Ramdisk,
		"-append", "console=ttyS0 quiet loglevel=4 panic=-1 oops=panic mitigations=off rcupdate.rcu_expedited=1",
	)
}

// copyLines copies until the end, and keeps the line with the exit code back.
func copyLines(out io.Writer, in io.Reader) (code int, ended bool, err error) {
	lines := bufio.NewReader(in)
	for {
		line, readErr := lines.ReadString('\n')
		if rest, ok := strings.CutPrefix(line, exit); ok {
			if _, err := fmt.Sscanf(rest, "%d", &code); err != nil {
				return 0, false, fmt.Errorf("the guest ended with %q", line)
			}
			ended = true
		} else if _, err := io.WriteString(out, line); err != nil {
			return code, ended, err
		}
		if errors.Is(readErr, io.EOF) {
			return code, ended, nil
		}
		if readErr != nil {
			return code, ended, readErr
		}
	}
}

// console is the end of what the kernel said.
func (m Machine) console() string {
	const most = 4000
	data, err := os.ReadFile(filepath.Join(m.Logs, "console.log"))
	if err != nil {
		return err.Error()
	}
	if len(data) > most {
		data = data[len(data)-most:]
	}
	return string(data)
}
