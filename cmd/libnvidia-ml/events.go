package main

// #include "platform.h"
import "C"

import (
	"context"
	"errors"
	"sync"
	"time"
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// eventSet is what nvmlEventSetCreate made.
type eventSet struct {
	events *simulator.Events
	mutex  sync.Mutex              // guards gpus
	gpus   map[string]registration // by UUID
}

// registration is what is wanted of one GPU.
type registration struct {
	device unsafe.Pointer
	types  uint64
}

var eventSets struct {
	mutex sync.Mutex // guards sets
	sets  [C.MAX_EVENT_SETS]*eventSet
}

//export nvmlEventSetCreate
func nvmlEventSetCreate(to *unsafe.Pointer) int32 {
	if _, code := current(); code != abi.Success {
		return code
	}
	eventSets.mutex.Lock()
	defer eventSets.mutex.Unlock()
	for i := range eventSets.sets {
		if eventSets.sets[i] != nil {
			continue
		}
		events, err := session.machine.Load().Events()
		if err != nil {
			return abi.Unknown
		}
		eventSets.sets[i] = &eventSet{events: events, gpus: map[string]registration{}}
		return set(to, unsafe.Pointer(&C.event_set_handles[i]))
	}
	return abi.InsufficientResources
}

// eventSetAt returns the place of a set in eventSets.sets, whose lock is held.
func eventSetAt(h unsafe.Pointer) **eventSet {
	i := uintptr(h) - uintptr(unsafe.Pointer(&C.event_set_handles[0]))
	if i >= uintptr(len(eventSets.sets)) || eventSets.sets[i] == nil {
		return nil
	}
	return &eventSets.sets[i]
}

func findEventSet(h unsafe.Pointer) *eventSet {
	eventSets.mutex.Lock()
	defer eventSets.mutex.Unlock()
	if place := eventSetAt(h); place != nil {
		return *place
	}
	return nil
}

//export nvmlEventSetFree
func nvmlEventSetFree(h unsafe.Pointer) int32 {
	eventSets.mutex.Lock()
	defer eventSets.mutex.Unlock()
	place := eventSetAt(h)
	if place == nil {
		return abi.InvalidArgument
	}
	(*place).events.Close()
	*place = nil
	return abi.Success
}

//export nvmlDeviceGetSupportedEventTypes
func nvmlDeviceGetSupportedEventTypes(h unsafe.Pointer, to *uint64) int32 {
	return query(h, "nvmlDeviceGetSupportedEventTypes", func(g simulator.GPU) abi.Return {
		return set(to, supportedEvents(g))
	})
}

func supportedEvents(g simulator.GPU) uint64 {
	if g.Has(simulator.FaultNoEvents) {
		return 0
	}
	types := uint64(abi.EventXid)
	if g.ReportsRecovery {
		types |= abi.EventRecovery
	}
	if g.Model.MIG != nil {
		types |= abi.EventMIG
	}
	return types
}

//export nvmlDeviceRegisterEvents
func nvmlDeviceRegisterEvents(h unsafe.Pointer, types uint64, in unsafe.Pointer) int32 {
	return query(h, "nvmlDeviceRegisterEvents", func(g simulator.GPU) abi.Return {
		s := findEventSet(in)
		switch {
		case s == nil:
			return abi.InvalidArgument
		case types&^supportedEvents(g) != 0:
			return abi.NotSupported
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.gpus[g.Spec.UUID] = registration{device: h, types: s.gpus[g.Spec.UUID].types | types}
		return abi.Success
	})
}

//export nvmlEventSetWait
func nvmlEventSetWait(in unsafe.Pointer, to unsafe.Pointer, timeout uint32) int32 {
	return nvmlEventSetWait_v2(in, to, timeout)
}

//export nvmlEventSetWait_v2
func nvmlEventSetWait_v2(in unsafe.Pointer, to unsafe.Pointer, timeout uint32) int32 {
	s := findEventSet(in)
	if s == nil || to == nil {
		return abi.InvalidArgument
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(timeout)*time.Millisecond)
	defer cancel()
	for {
		event, code := s.look()
		if event == nil && code == abi.Success {
			event, code = s.wait(ctx)
		}
		if code != abi.Success {
			return code
		}
		if event != nil {
			return store(to, s.data(*event))
		}
	}
}

func (s *eventSet) data(e simulator.Event) abi.EventData {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return abi.EventData{
		Device: s.gpus[e.UUID].device, Type: typeOf(e), Data: e.Xid,
		GPUInstance: abi.NoInstance, ComputeInstance: abi.NoInstance,
	}
}

func typeOf(e simulator.Event) uint64 {
	switch {
	case e.MIG:
		return abi.EventMIG
	case e.Xid == 0:
		return abi.EventRecovery
	}
	return abi.EventXid
}

// look returns an event that is there already, or what keeps the set from ever
// getting one: no driver, or a GPU that is lost.
func (s *eventSet) look() (*simulator.Event, abi.Return) {
	if event, err := s.events.Poll(s.wants); event != nil || err != nil {
		return event, code(err)
	}
	state, code := current()
	if code != abi.Success {
		return nil, code
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range state.GPUs {
		if s.gpus[state.Spec.GPUs[i].UUID].types != 0 && state.GPUs[i].Has(simulator.FaultLost) {
			return nil, abi.GPUIsLost
		}
	}
	return nil, abi.Success
}

func (s *eventSet) wait(ctx context.Context) (*simulator.Event, abi.Return) {
	event, err := s.events.Next(ctx, s.wants)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, abi.Timeout
	}
	return event, code(err)
}

func (s *eventSet) wants(e simulator.Event) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return e.MPS == nil && s.gpus[e.UUID].types&typeOf(e) != 0
}

func code(err error) abi.Return {
	if err != nil {
		return abi.Unknown
	}
	return abi.Success
}
