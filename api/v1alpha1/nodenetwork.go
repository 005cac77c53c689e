package v1alpha1

import (
	"bufio"
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// NodeNetworkKind is the kind of NodeNetwork.
const NodeNetworkKind = "NodeNetwork"

// NodeNetwork is what an administrator says of the NICs of nodes. It is a file of the
// node agent's, not an object of the API server's.
//
// +kubebuilder:object:root=true
type NodeNetwork struct {
	metav1.TypeMeta `json:",inline"`
	// Rules in their order: the first whose nodes match is the node's, and no other.
	Rules []NodeNetworkRule `json:"rules"`
}

// NodeNetworkRule is for nodes whose NICs are alike. PCI addresses are written as sysfs
// has them, "0000:1b:00.0", or as nvidia-smi does.
//
// +kubebuilder:object:generate=true
type NodeNetworkRule struct {
	// Nodes by name; "*" stands for any characters, "?" for one, "[a-c]" for one of
	// several. Left out: all.
	Nodes []string `json:"nodes,omitempty"`
	// Pairs of a GPU and a NIC that is next to it. A GPU that is in one has no others, and
	// neither has the NIC; what is near the rest of the GPUs, the machine says.
	Pairs []NodePair `json:"pairs,omitempty"`
	// Rails are the addresses of NICs in the order of their rails, from 0. Left out, it
	// is the order of the addresses.
	Rails []string `json:"rails,omitempty"`
	// VirtualFunctions that NICs are to have. Those of other NICs stay as they are.
	VirtualFunctions []NodeVirtualFunctions `json:"virtualFunctions,omitempty"`
	// Lossless is how each NIC that is offered treats traffic. Left out, the NICs stay
	// as they are.
	Lossless *NodeLossless `json:"lossless,omitempty"`
}

// NodePair is a GPU and a NIC, by their PCI addresses.
//
// +kubebuilder:object:generate=true
type NodePair struct {
	GPU string `json:"gpu"`
	NIC string `json:"nic"`
}

// NodeVirtualFunctions says how many a NIC is to have.
//
// +kubebuilder:object:generate=true
type NodeVirtualFunctions struct {
	// NIC by its PCI address.
	NIC string `json:"nic"`
	// Count of virtual functions, 1 at least. A NIC that has another number of them
	// already is left as it is, since they may be in use.
	Count int32 `json:"count"`
}

// NodeLossless is a port's treatment of classes of traffic. What is left out stays as it
// is.
//
// +kubebuilder:object:generate=true
type NodeLossless struct {
	// PFCPriorities, 0 to 7, of which no frame is lost: the port is paused instead. All
	// others are not paused.
	PFCPriorities []int32 `json:"pfcPriorities,omitempty"`
	// Trust is what priorities are taken from: dscp, the IP header's code point, or pcp,
	// the VLAN tag.
	Trust *NodeTrust `json:"trust,omitempty"`
	// DSCP is the priority of each code point, 0 to 63: {26: 3}. With trust dscp alone.
	DSCP map[string]int32 `json:"dscp,omitempty"`
}

// NodeTrust is what a port takes priorities from.
type NodeTrust string

// Kinds of trust.
const (
	NodeTrustDSCP NodeTrust = "dscp"
	NodeTrustPCP  NodeTrust = "pcp"
)

var nodeNetworks = newNodeNetworks()

func newNodeNetworks() runtime.Decoder {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(GroupVersion, &NodeNetwork{})
	return serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, serializer.SerializerOptions{Yaml: true, Strict: true})
}

// DecodeNodeNetwork reads and validates a NodeNetwork in YAML or JSON. Unknown and
// duplicate fields, and values out of range, are errors that name field and value and
// say what would be right.
func DecodeNodeNetwork(content []byte) (*NodeNetwork, error) {
	if n := documents(content); n > 1 {
		return nil, fmt.Errorf("there are %d documents: want one, with all rules", n)
	}
	object, err := decodeStrictly(nodeNetworks, content, NodeNetworkKind, "docs/nics.md")
	if err != nil {
		return nil, err
	}
	network, ok := object.(*NodeNetwork)
	if !ok {
		return nil, fmt.Errorf("kind: %T is not known here: want %s in %s", object, NodeNetworkKind, GroupVersion)
	}
	if err := network.Validate().ToAggregate(); err != nil {
		return nil, err
	}
	return network, nil
}

// documents counts those of a YAML file that say something: the decoder would take the
// first and drop the others.
func documents(content []byte) int {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	n := 0
	for {
		document, err := reader.Read()
		if err != nil {
			return n
		}
		if len(bytes.TrimSpace(bytes.TrimPrefix(document, []byte("---")))) > 0 {
			n++
		}
	}
}
