package mps_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/cuda"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// daemon is a control daemon, with its directories.
type daemon struct {
	t       *testing.T
	machine *simulatortest.Machine
	env     []string
	pipe    string
}

// newDaemon is one that is not started.
func newDaemon(t *testing.T, machine string, devices ...int) *daemon {
	t.Helper()
	m := simulatortest.New(t, machine)
	m.InstallTools()
	return daemonOn(t, m, devices...)
}

func daemonOn(t *testing.T, m *simulatortest.Machine, devices ...int) *daemon {
	d := &daemon{t: t, machine: m, pipe: filepath.Join(t.TempDir(), "pipe")}
	var uuids []string
	for _, i := range devices {
		uuids = append(uuids, m.Spec().GPUs[i].UUID)
	}
	d.env = []string{"CUDA_MPS_PIPE_DIRECTORY=" + d.pipe, "CUDA_MPS_LOG_DIRECTORY=" + filepath.Join(t.TempDir(), "log"),
		"CUDA_VISIBLE_DEVICES=" + strings.Join(uuids, ",")}
	return d
}

func (d *daemon) program(args ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(d.machine.Root(), "usr/bin/nvidia-cuda-mps-control"), args...)
	command.Env = d.env
	return command
}

// start starts it, ready for clients, until the test ends.
func (d *daemon) start(args ...string) *daemon {
	d.t.Helper()
	if output, err := d.program(append([]string{"-d"}, args...)...).CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %s", err, output)
	}
	pid := d.pid()
	d.t.Cleanup(func() {
		syscall.Kill(pid, syscall.SIGTERM) // it may be gone
		d.gone("control")
	})
	return d
}

func (d *daemon) pid() int {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.pipe, "nvidia-cuda-mps-control.pid"))
	if err != nil {
		d.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		d.t.Fatal(err)
	}
	return pid
}

// gone waits until a file of the pipe directory is gone.
func (d *daemon) gone(name string) {
	d.t.Helper()
	patiencetest.Until(d.t, name+" goes", func() bool {
		_, err := os.Lstat(filepath.Join(d.pipe, name))
		return err != nil
	})
}

// ask gives a command of protocol 2 and wants no error of the program.
func (d *daemon) ask(command string) string {
	d.t.Helper()
	c := d.program()
	c.Stdin = strings.NewReader(command + "\n")
	output, err := c.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s: %v: %s", command, err, output)
	}
	return strings.TrimSuffix(string(output), "\n")
}

// verb gives a command of protocol 3.
func (d *daemon) verb(words ...string) (string, error) {
	output, err := d.program(words...).CombinedOutput()
	return strings.TrimSuffix(string(output), "\n"), err
}

func (d *daemon) must(words ...string) string {
	d.t.Helper()
	output, err := d.verb(words...)
	if err != nil {
		d.t.Fatalf("%q: %v: %s", words, err, output)
	}
	return output
}

func (d *daemon) refused(words ...string) {
	d.t.Helper()
	if output, err := d.verb(words...); err == nil {
		d.t.Errorf("%q is not refused: %s", words, output)
	}
}

// process is a CUDA process that does what it is told.
type process struct {
	t       *testing.T
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	first   cuda.Line
}

// client starts one that uses the daemon, with more environment.
func (d *daemon) client(env ...string) *process {
	d.t.Helper()
	return d.clientAs(0, env...)
}

func (d *daemon) clientAs(uid int, env ...string) *process {
	d.t.Helper()
	p := &process{t: d.t, command: exec.Command(simulatortest.Tools(d.t), cuda.Name, "--commands")}
	p.command.Env = append([]string{"CUDA_MPS_PIPE_DIRECTORY=" + d.pipe, "DOVETAIL_SIM_ROOT=" + d.machine.Root()}, env...)
	if uid != 0 {
		p.command.Path = d.forEverybody()
		p.command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	var err error
	if p.in, err = p.command.StdinPipe(); err != nil {
		d.t.Fatal(err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	p.command.Stderr = os.Stderr
	if err := p.command.Start(); err != nil {
		d.t.Fatal(err)
	}
	p.out = json.NewDecoder(out)
	d.t.Cleanup(p.end)
	return p
}

// forEverybody lets other users to the pipe directory, and to a copy of the program.
func (d *daemon) forEverybody() string {
	d.t.Helper()
	path := filepath.Join(d.t.TempDir(), cuda.Name)
	if err := simulatortest.CopyProgram(simulatortest.Tools(d.t), path); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// got is a client that has begun.
func (d *daemon) got(env ...string) *process {
	d.t.Helper()
	p := d.client(env...)
	p.first = p.line()
	return p
}

func (p *process) line() (l cuda.Line) {
	p.t.Helper()
	if err := p.out.Decode(&l); err != nil {
		p.t.Errorf("no line from %v: %v", p.command.Args, err)
	}
	return l
}

// do gives a command and wants that error, or success with "".
func (p *process) do(command, want string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, command+"\n"); err != nil {
		p.t.Error(err)
	}
	if l := p.line(); l.Error != want {
		p.t.Errorf("%s: %+v, want %q", command, l, want)
	}
}

// refused says how a client is refused at its beginning.
func (d *daemon) refuses(want string, env ...string) {
	d.t.Helper()
	p := d.got(env...)
	if p.first.Error != want {
		d.t.Errorf("a client with %q: %+v, want %q", env, p.first, want)
	}
}

func (p *process) end() {
	p.in.Close()
	p.command.Wait()
}
