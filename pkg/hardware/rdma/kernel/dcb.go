package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/dcb"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// DCB implements Namespace.
func (n *namespace) DCB(link string) (machine.DCB, error) {
	state, err := n.dcb(link)
	return state.DCB, err
}

func (n *namespace) dcb(link string) (dcb.State, error) {
	answers, err := n.dcbRequest(dcb.Get, dcb.Ask(link))
	if err != nil {
		return dcb.State{}, err
	}
	if len(answers) == 0 {
		return dcb.State{}, unix.ENODATA
	}
	return dcb.Parse(answers[0])
}

// SetDCB implements Namespace. What there is too much goes last: until then the port
// treats what it knows as before.
func (n *namespace) SetDCB(link string, want machine.DCB) error {
	for _, next := range []func(*dcb.State, string, machine.DCB) []byte{(*dcb.State).Change, (*dcb.State).Prune} {
		state, err := n.dcb(link)
		if err != nil {
			return err
		}
		if message := next(&state, link, want); message != nil {
			if err := n.dcbChange(message); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *namespace) dcbChange(message []byte) error {
	answers, err := n.dcbRequest(dcb.Set, message)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if err := dcb.Result(a); err != nil {
			return err
		}
	}
	return nil
}

// raw is a message's body without its header. It cannot be added as raw data, since that
// would come after all attributes.
type raw []byte

func (r raw) Len() int          { return len(r) }
func (r raw) Serialize() []byte { return r }

func (n *namespace) dcbRequest(kind int, body []byte) ([][]byte, error) {
	r := n.request(kind, unix.NLM_F_ACK)
	r.AddData(raw(body))
	return r.Execute(unix.NETLINK_ROUTE, 0)
}
