package cuda

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
)

// Line is what the program prints: once about the process, then for each command and
// for what ends it.
type Line struct {
	PID int `json:"pid,omitempty"`
	// MPS is nil without it.
	MPS     *mps.Attached        `json:"mps,omitempty"`
	Devices []mps.AttachedDevice `json:"devices,omitempty"`
	// Allocated is the sum that was got from the command line's device, in bytes.
	Allocated uint64 `json:"allocated,omitempty"`
	// Error is a CUDA error's name, and Message says why.
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
	// Ended says that the error came from outside.
	Ended bool `json:"ended,omitempty"`
}

func (l *Line) fail(err error) {
	var e *mps.Error
	if !errors.As(err, &e) {
		e = &mps.Error{Code: "CUDA_ERROR_UNKNOWN", Message: err.Error()}
	}
	l.Error, l.Message = e.Code, e.Message
}

func (l Line) print() { json.NewEncoder(os.Stdout).Encode(l) } //nolint:errcheck // nobody listens

// Name of the program.
const Name = "cuda-client"

// Run is the program: it allocates what it is told to, prints what it got, and holds
// that where it is to. Its exit status is 1 after a CUDA error.
func Run(machine *simulator.Machine, args []string) int {
	flags := flag.NewFlagSet(Name, flag.ContinueOnError)
	device := flags.Int("device", 0, "of which to allocate, in this process's order")
	allocate := flags.String("allocate", "", "allocate `SIZE`, such as 512M")
	hold := flags.Bool("hold", false, "hold what was got until a signal comes")
	fault := flags.Bool("fault", false, "end with a fatal fault")
	var then []string
	flags.Func("then", "next, do this `COMMAND` as of standard input; can be given again", func(command string) error {
		then = append(then, command)
		return nil
	})
	commands := flags.Bool("commands", false, "do what standard input says, one a line, until it ends: allocate [DEVICE] SIZE, fault [DEVICE]")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	line := Line{PID: os.Getpid()}
	p, err := Init(machine)
	if err == nil {
		defer p.Close()
		line.Devices = p.Devices
		if p.Session != nil {
			line.MPS = &p.Session.Attached
		}
		if *allocate != "" {
			line.Allocated, err = p.allocate(*device, *allocate)
		}
	}
	if err != nil {
		line.fail(err)
	}
	line.print()
	if err != nil {
		return 1
	}
	for _, command := range then {
		p.do(strings.Fields(command)...)
	}
	switch {
	case *fault:
		return p.do("fault", strconv.Itoa(*device))
	case *commands:
		return p.obey()
	case *hold:
		return p.wait(nil)
	}
	return 0
}

func (p *Process) allocate(device int, size string) (uint64, error) {
	bytes, err := mps.ParseSize(size)
	if err != nil {
		return 0, &mps.Error{Code: mps.ErrInvalidArgument, Message: err.Error()}
	}
	if err := p.Allocate(device, bytes); err != nil {
		return 0, err
	}
	return bytes, nil
}

// obey does what standard input says until it ends.
func (p *Process) obey() int {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	return p.wait(lines)
}

// wait waits for a signal, the end of lines, or what ends the process's work.
func (p *Process) wait(lines <-chan string) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	for {
		select {
		case <-signals:
			return 0
		case text, ok := <-lines:
			if !ok {
				return 0
			}
			p.do(strings.Fields(text)...)
		case err := <-p.Ended():
			line := Line{Ended: true}
			line.fail(err)
			line.print()
			return 1
		}
	}
}

func (p *Process) do(words ...string) int {
	line, device := Line{}, 0
	var err error
	if len(words) > 1 && strings.Trim(words[1], "0123456789") == "" {
		device, err = strconv.Atoi(words[1])
		words = append(words[:1:1], words[2:]...)
	}
	switch {
	case err != nil:
	case len(words) == 2 && words[0] == "allocate":
		line.Allocated, err = p.allocate(device, words[1])
	case len(words) == 1 && words[0] == "fault":
		err = p.Fault(device)
	default:
		err = fmt.Errorf("command %q: give allocate [DEVICE] SIZE, or fault [DEVICE]", words)
	}
	if err != nil {
		line.fail(err)
	}
	line.print()
	if err != nil {
		return 1
	}
	return 0
}
