package admission

import "time"

// What connections may take of time and memory, whoever makes them.
const (
	// maxConnections at a time. An API server has one or two, since HTTP/2 has many
	// requests on each.
	maxConnections = 64
	// streams are requests at a time on one connection. They, too, take memory while they
	// wait: 64 KiB each, with headers as large as may be, and what Go has not collected.
	streams = 32
	// received are the bytes that one connection may have sent and nobody has read.
	received = 256 << 10
	// maxHeader is the most that is read of a request's header, in bytes.
	maxHeader = 16 << 10

	headerTimeout = 5 * time.Second
	// callTimeout is how long a request may take until all of it is read, and how long
	// until its answer is sent.
	callTimeout = 10 * time.Second
	idleTimeout = 2 * time.Minute
)
