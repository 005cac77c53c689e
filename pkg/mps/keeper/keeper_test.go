package keeper_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/mps/keeper"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

func TestMain(m *testing.M) {
	switch os.Getenv("KEEPER_TEST") {
	case "keeper":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		self, _ := os.Executable()
		os.Setenv("KEEPER_TEST", "child")
		if err := keeper.Run(ctx, slog.New(slog.DiscardHandler), []string{self}); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("done")
		return
	case "child": // it leaves a grandchild behind, and waits for a signal
		c := exec.Command("sleep", "60")
		if err := c.Start(); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		fmt.Println("child", os.Getpid(), c.Process.Pid)
		<-terminated
		fmt.Println("terminated")
		return
	}
	os.Exit(m.Run())
}

// TestKeep: a child that is killed comes again; its own children go to the keeper, live
// on, and are reaped.
func TestKeep(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k := exec.Command(self)
	k.Env = append(os.Environ(), "KEEPER_TEST=keeper")
	output, err := k.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.Process.Kill(); _ = k.Wait() }()
	lines := make(chan string)
	go func() {
		for in := bufio.NewScanner(output); in.Scan(); {
			lines <- in.Text()
		}
		close(lines)
	}()
	next := func() string {
		select {
		case l := <-lines:
			return l
		case <-time.After(patiencetest.Limit):
			t.Fatal("nothing happens")
		}
		return ""
	}
	var child, grandchild int
	for range 3 {
		if n, err := fmt.Sscanf(next(), "child %d %d", &child, &grandchild); n != 2 {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(grandchild, syscall.SIGKILL) })
		if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		patiencetest.Until(t, "the grandchild becomes the keeper's", func() bool { return parent(grandchild) == k.Process.Pid })
		if err := syscall.Kill(grandchild, syscall.SIGKILL); err != nil {
			t.Fatalf("the grandchild has not survived: %v", err)
		}
		patiencetest.Until(t, "the grandchild is reaped", func() bool { return parent(grandchild) == 0 })
	}
	if n, err := fmt.Sscanf(next(), "child %d %d", &child, &grandchild); n != 2 {
		t.Fatal(err)
	}
	if err := k.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := next() + " " + next(); got != "terminated done" {
		t.Errorf("at the end: %s", got)
	}
	if parent(grandchild) == 0 {
		t.Error("the end took what the child has started along; in a container the runtime does so")
	}
}

// parent is a process's, 0 where it is not there.
func parent(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	p, _ := strconv.Atoi(fields[1])
	return p
}
