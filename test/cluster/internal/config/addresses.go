// Package config renders what the programs of a cluster are started with.
package config

import "fmt"

// The address plan. Each cluster has a network of its own, so all use the same.
const (
	ControlPlaneIP = "10.99.0.254"
	ServiceIP      = "10.96.0.1" // of the `kubernetes` Service, on the control plane's lo
	ServiceRange   = "10.96.0.0/16"
	Server         = "https://" + ControlPlaneIP + ":443"
)

// NodeIP is the address of the i-th node.
func NodeIP(i int) string { return fmt.Sprintf("10.99.0.%d", i) }

// PodRange is the network of the Pods on the i-th node.
func PodRange(i int) string { return fmt.Sprintf("10.99.%d.0/24", i) }
