package guest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// monitor is QEMU's (QEMU Machine Protocol), on the third serial line: what a person
// would do at the machine.
type monitor struct {
	line     *os.File
	answers  *bufio.Reader
	commands int
}

// theMonitor is opened at set-up: it can be made ready only once.
var theMonitor *monitor

func openMonitor() error {
	line, err := os.OpenFile("/dev/ttyS2", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	mode, err := unix.IoctlGetTermios(int(line.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	mode.Iflag, mode.Oflag, mode.Lflag = 0, 0, 0
	if err := unix.IoctlSetTermios(int(line.Fd()), unix.TCSETS, mode); err != nil {
		return err
	}
	theMonitor = &monitor{line: line, answers: bufio.NewReader(line)}
	return within(patience, func() error {
		// It wants this first, and complains of a second one.
		if err := theMonitor.execute("qmp_capabilities", nil); err != nil {
			return theMonitor.execute("query-status", nil)
		}
		return nil
	})
}

// restart is a byte that is in no JSON: the monitor forgets what it has begun to read. At
// first that is a part of its own greeting, which the line has echoed.
const restart = "\xff"

// answerLimit is for one command. None of ours takes long.
const answerLimit = 5 * time.Second

// execute gives a command and waits for its answer among events and complaints.
func (m *monitor) execute(command string, arguments map[string]any) error {
	m.commands++
	request := map[string]any{"execute": command, "id": m.commands}
	if arguments != nil {
		request["arguments"] = arguments
	}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if err := m.line.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return err
	}
	if _, err := m.line.WriteString(restart + string(text) + "\n"); err != nil {
		return err
	}
	for {
		line, err := m.answers.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%s: the monitor has not answered: %w", command, err)
		}
		var answer struct {
			ID    int
			Error *struct{ Desc string }
		}
		if json.Unmarshal(line, &answer) != nil || answer.ID != m.commands {
			continue
		}
		if answer.Error != nil {
			return fmt.Errorf("%s: %s", command, answer.Error.Desc)
		}
		return nil
	}
}

// setCable plugs a NIC's cable in, or pulls it out.
func setCable(n topology.NIC, in bool) error {
	return theMonitor.execute("set_link", map[string]any{"name": n.Name, "up": in})
}

// TestCable: without a cable the carrier is gone and the RDMA port is down, while the
// administrator has the interface up.
func TestCable(t *testing.T) {
	nic := lend(t)
	nics := newAdapter(t)
	w := watch(t, nics)
	t.Cleanup(func() { must(t, setCable(nic, true)) })
	must(t, setCable(nic, false))
	w.expect(t, "cable out")
	eventually(t, func() error { return portIs("/", nic.RDMA, "DOWN") })
	found, _ := describe(t, nics)
	is := found[nic.Name]
	if d := is.Netdevs[0]; !d.Up || d.Carrier || is.Health.OK() || is.RDMA.Ports[0].State != "DOWN" {
		t.Errorf("without a cable it is %+v, %+v", is, is.RDMA)
	}
	w.quiet(t)
	must(t, setCable(nic, true))
	w.expect(t, "cable in")
	settled(t, nic)
	if found, _ = describe(t, nics); !found[nic.Name].Health.OK() {
		t.Errorf("with its cable it is %+v", found[nic.Name])
	}
}
