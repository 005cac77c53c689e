// Package mps stands in for NVIDIA's Multi-Process Service on a simulated machine:
// the control daemon with the commands of protocols 2 and 3, the servers that it
// starts, and what the CUDA driver does in a client. Each is a process of its own
// (cmd/dovetail-sim-tools), as in life, and what they say to each other is JSON over
// Unix sockets.
//
// Source: NVIDIA, "Multi-Process Service", release 615, and the manual page
// nvidia-cuda-mps-control(1). Where they say nothing, comments here say "assumed".
package mps

import (
	"encoding/json"
	"net"
)

// Errors that a client sees, by their names in cuda.h.
const (
	ErrOutOfMemory     = "CUDA_ERROR_OUT_OF_MEMORY"
	ErrInvalidDevice   = "CUDA_ERROR_INVALID_DEVICE"
	ErrUnavailable     = "CUDA_ERROR_DEVICE_UNAVAILABLE"
	ErrConnection      = "CUDA_ERROR_MPS_CONNECTION_FAILED"
	ErrServerNotReady  = "CUDA_ERROR_MPS_SERVER_NOT_READY"
	ErrMaxClients      = "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"
	ErrTerminated      = "CUDA_ERROR_MPS_CLIENT_TERMINATED"
	ErrRPC             = "CUDA_ERROR_MPS_RPC_FAILURE"
	ErrLaunchFailed    = "CUDA_ERROR_LAUNCH_FAILED"
	ErrInvalidArgument = "CUDA_ERROR_INVALID_VALUE"
)

// request is the first message of a connection to a control socket: one of the two.
type request struct {
	// Command of an administrator's.
	Command []string `json:"command,omitempty"`
	// Stdin says that it came on standard input, as with protocol 2.
	Stdin  bool    `json:"stdin,omitempty"`
	Attach *attach `json:"attach,omitempty"`
}

// attach is what a client's driver says of it.
type attach struct {
	Command string `json:"command"`
	// The client's environment: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE and
	// CUDA_MPS_PINNED_DEVICE_MEM_LIMIT.
	Percentage string `json:"percentage,omitempty"`
	Memory     string `json:"memory,omitempty"`
	Cgroup     string `json:"cgroup,omitempty"`
}

// answer is the control daemon's to a command.
type answer struct {
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
}

// call is what a client asks of its server.
type call struct {
	Device   int    `json:"device"`
	Allocate uint64 `json:"allocate,omitempty"` // bytes
	Fault    bool   `json:"fault,omitempty"`
}

// reply answers an attach or a call. An Event comes by itself, and is the end.
type reply struct {
	Attached *Attached `json:"attached,omitempty"`
	Error    string    `json:"error,omitempty"` // ErrOutOfMemory and so on
	Message  string    `json:"message,omitempty"`
	Event    bool      `json:"event,omitempty"`
}

// Attached is what a client got.
type Attached struct {
	Protocol int `json:"protocol"`
	// Server is its process ID, in the eyes of the control daemon.
	Server int `json:"server"`
	// ServerName and Namespace are of protocol 3.
	ServerName string           `json:"serverName,omitempty"`
	Namespace  string           `json:"namespace,omitempty"`
	Percentage float64          `json:"threadPercentage"`
	Devices    []AttachedDevice `json:"devices"`
}

// AttachedDevice is one device of a client's, in its own order.
type AttachedDevice struct {
	UUID            string `json:"uuid"`
	Memory          uint64 `json:"memory"` // bytes that all may allocate together
	Multiprocessors int    `json:"multiprocessors"`
	// Limit of the client's memory, in bytes, and NamespaceLimit of all clients of its
	// namespace; 0 is none.
	Limit          uint64 `json:"limit,omitempty"`
	NamespaceLimit uint64 `json:"namespaceLimit,omitempty"`
}

// order is what the control daemon tells a server.
type order struct {
	// Admit a client, whose connection comes with the message.
	Admit *admission `json:"admit,omitempty"`
	// Limits of a namespace, or of protocol 2's clients.
	Namespace string  `json:"namespace,omitempty"`
	Limits    *limits `json:"limits,omitempty"`
	// Report is answered with a report.
	Report bool `json:"report,omitempty"`
	// Terminate a client, by its process ID.
	Terminate int `json:"terminate,omitempty"`
	// Drain admits nobody more, and ends with the last client.
	Drain bool `json:"drain,omitempty"`
}

// admission is an attach, and who it came from.
type admission struct {
	attach
	PID       int    `json:"pid"`
	UID       int    `json:"uid"`
	Namespace string `json:"namespace,omitempty"`
}

// limits of a namespace, or of a server of protocol 2, as they were given.
type limits struct {
	Percentage float64 `json:"percentage,omitempty"`
	// Memory by device, later entries win: an index, a UUID, or "" for each.
	Memory []memoryLimit `json:"memory,omitempty"`
}

// report is a server's.
type report struct {
	Fault   bool         `json:"fault,omitempty"`
	Clients []clientInfo `json:"clients,omitempty"`
	Error   string       `json:"error,omitempty"`
}

type clientInfo struct {
	ID        int    `json:"id"`
	PID       int    `json:"pid"`
	Namespace string `json:"namespace,omitempty"`
	Command   string `json:"command"`
}

// send writes a message as a line.
func send(to net.Conn, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = to.Write(append(data, '\n'))
	return err
}
