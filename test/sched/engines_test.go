package sched

import (
	"fmt"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// oneOf is a scheduler with a node that has the machine's first GPU.
func oneOf(t *testing.T, name string) *Scheduler {
	t.Helper()
	m := simulatortest.Describe(t, name)
	m.GPUs = m.GPUs[:1]
	s := New()
	s.Publish(node, catalog.Build(m, catalog.Options{}))
	return s
}

// TestAllMediaEngines: a partition that has all media engines leaves room to those
// without any, and to nothing else.
func TestAllMediaEngines(t *testing.T) {
	s := oneOf(t, "rtx-pro-6000")
	all := s.gets(t, Claim("all", mig("p", "1g.24gb+me.all")), "mig-24-00-1g24gbmeall-0")
	s.gets(t, Claim("one decoder", mig("p", "1g.24gb")))
	s.gets(t, Claim("graphics", mig("p", "2g.48gb+gfx")))
	s.gets(t, Claim("without", mig("p", "2g.48gb-me")), "mig-24-00-2g48gb-me-6")
	s.Release(all)
	s.gets(t, Claim("again", mig("p", "1g.24gb")), "mig-24-00-1g24gb-0")
	s.gets(t, Claim("all again", mig("p", "1g.24gb+me.all")))
}

// TestSevenOnB200: its largest profile has one decoder, and so has each of seven.
func TestSevenOnB200(t *testing.T) {
	s := oneOf(t, "hgx-b200")
	for i := range 7 {
		s.gets(t, Claim(fmt.Sprint("c", i), mig("p", "1g.23gb")), fmt.Sprintf("mig-1a-00-1g23gb-%d", i))
	}
	s.gets(t, Claim("eighth", mig("p", "1g.23gb")))
	s.gets(t, Claim("whole", Request("g", machine.KindGPU)))
	s = oneOf(t, "hgx-b200")
	s.gets(t, Claim("largest", mig("p", "7g.180gb")), "mig-1a-00-7g180gb-0")
}
