package standin_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/standin"
)

// keeperOf names the machine that this program is to be the keeper of.
const keeperOf = "STANDIN_TEST_KEEPER_OF"

func TestMain(m *testing.M) {
	root, is := os.LookupEnv(keeperOf)
	if !is {
		os.Exit(m.Run())
	}
	machine, err := simulator.Open(root)
	if err == nil {
		err = standin.Run(context.Background(), machine, func(string) {}, func() { fmt.Println("ready") })
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestNothingIsLeft, not even when the keeper's process is killed.
func TestNothingIsLeft(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces and interfaces")
	}
	m := simulatortest.New(t, "nic-only")
	name := m.Spec().NICs[0].Netdevs[0].Name
	keeper := exec.Command(os.Args[0])
	keeper.Env = append(os.Environ(), keeperOf+"="+m.Root())
	keeper.Stderr = os.Stderr
	keeper.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := keeper.StdoutPipe()
	must(t, err)
	must(t, keeper.Start())
	t.Cleanup(func() { keeper.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	node := &space{}
	node.fd, err = netns.GetFromPid(keeper.Process.Pid)
	must(t, err)
	defer node.fd.Close()
	node.Handle, err = netlink.NewHandleAt(node.fd)
	must(t, err)
	defer node.Close()
	if node.link(t, name) == nil {
		t.Fatalf("there is no %s", name)
	}
	updates, done := make(chan netlink.LinkUpdate, 100), make(chan struct{})
	defer close(done)
	must(t, netlink.LinkSubscribeAt(node.fd, updates, done))
	must(t, keeper.Process.Kill())
	for deadline := time.After(patience); node.link(t, name) != nil; {
		select {
		case <-updates:
		case <-deadline:
			t.Fatal("a stand-in outlives its keeper, which was killed")
		}
	}
	_ = keeper.Wait() // it was killed
}
