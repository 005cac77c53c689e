package main

import "C"

import (
	"fmt"
	"strings"
	"sync"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
)

//export nvmlSystemGetDriverVersion
func nvmlSystemGetDriverVersion(to *byte, size uint32) int32 {
	state, code := current()
	if code != abi.Success {
		return code
	}
	return setString(to, size, state.Spec.Driver.Version)
}

//export nvmlSystemGetNVMLVersion
func nvmlSystemGetNVMLVersion(to *byte, size uint32) int32 {
	state, code := current()
	if code != abi.Success {
		return code
	}
	major, _, _ := strings.Cut(state.Spec.Driver.CUDA.String(), ".")
	return setString(to, size, fmt.Sprintf("%s.%s", major, state.Spec.Driver.Version))
}

//export nvmlSystemGetCudaDriverVersion
func nvmlSystemGetCudaDriverVersion(to *int32) int32 {
	return nvmlSystemGetCudaDriverVersion_v2(to)
}

//export nvmlSystemGetCudaDriverVersion_v2
func nvmlSystemGetCudaDriverVersion_v2(to *int32) int32 {
	state, code := current()
	if code != abi.Success {
		return code
	}
	cuda := state.Spec.Driver.CUDA
	return set(to, int32(cuda.Major*1000+cuda.Minor*10))
}

// errorStrings keeps the C strings that nvmlErrorString handed out.
var errorStrings sync.Map // abi.Return → *C.char

//export nvmlErrorString
func nvmlErrorString(code int32) *C.char {
	if text, ok := errorStrings.Load(code); ok {
		return text.(*C.char)
	}
	text, ok := abi.ErrorStrings[code]
	if !ok {
		text, code = "Unknown Error", abi.Unknown
	}
	kept, _ := errorStrings.LoadOrStore(code, C.CString(text))
	return kept.(*C.char)
}
