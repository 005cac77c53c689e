package tree

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"runtime"
)

// sharedObject returns the smallest shared object that loaders and ldconfig
// take: it has a name (DT_SONAME) and no symbols.
func sharedObject(soname string) string {
	const (
		headerSize  = 64 // ELF-64 header
		programSize = 56 // a program header
		sectionSize = 64 // a section header
		symbolSize  = 24
		strings     = headerSize + 2*programSize // where .dynstr begins
	)
	// One string table serves the dynamic section and the sections' names.
	table := "\x00" + soname + "\x00.dynstr\x00.dynsym\x00.dynamic\x00"
	at := func(name string) uint32 { return uint32(bytes.Index([]byte(table), []byte(name+"\x00"))) }
	align := func(n int) int { return (n + 7) &^ 7 }
	symbols := align(strings + len(table))
	dynamic := symbols + symbolSize
	entries := []elf.Dyn64{
		{Tag: int64(elf.DT_SONAME), Val: 1},
		{Tag: int64(elf.DT_STRTAB), Val: strings},
		{Tag: int64(elf.DT_STRSZ), Val: uint64(len(table))},
		{Tag: int64(elf.DT_SYMTAB), Val: uint64(symbols)},
		{Tag: int64(elf.DT_SYMENT), Val: symbolSize},
		{Tag: int64(elf.DT_NULL)},
	}
	dynamicSize := 16 * len(entries)
	sections := dynamic + dynamicSize

	var out bytes.Buffer
	put := func(v any) { binary.Write(&out, binary.LittleEndian, v) } //nolint:errcheck // into memory
	put(elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elfMachine()), Version: uint32(elf.EV_CURRENT),
		Phoff: headerSize, Shoff: uint64(sections), Ehsize: headerSize,
		Phentsize: programSize, Phnum: 2, Shentsize: sectionSize, Shnum: 4, Shstrndx: 1,
	})
	put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Align: 0x1000,
		Filesz: uint64(sections), Memsz: uint64(sections)})
	put(elf.Prog64{Type: uint32(elf.PT_DYNAMIC), Flags: uint32(elf.PF_R | elf.PF_W), Align: 8,
		Off: uint64(dynamic), Vaddr: uint64(dynamic), Paddr: uint64(dynamic),
		Filesz: uint64(dynamicSize), Memsz: uint64(dynamicSize)})
	out.WriteString(table)
	out.Write(make([]byte, dynamic-out.Len())) // padding, and the one empty symbol
	put(entries)
	put(elf.Section64{})
	put(elf.Section64{Name: at(".dynstr"), Type: uint32(elf.SHT_STRTAB), Flags: uint64(elf.SHF_ALLOC),
		Addr: strings, Off: strings, Size: uint64(len(table)), Addralign: 1})
	put(elf.Section64{Name: at(".dynsym"), Type: uint32(elf.SHT_DYNSYM), Flags: uint64(elf.SHF_ALLOC),
		Addr: uint64(symbols), Off: uint64(symbols), Size: symbolSize, Link: 1, Info: 1, Addralign: 8, Entsize: symbolSize})
	put(elf.Section64{Name: at(".dynamic"), Type: uint32(elf.SHT_DYNAMIC), Flags: uint64(elf.SHF_ALLOC | elf.SHF_WRITE),
		Addr: uint64(dynamic), Off: uint64(dynamic), Size: uint64(dynamicSize), Link: 1, Addralign: 8, Entsize: 16})
	return out.String()
}

func elfMachine() elf.Machine {
	if runtime.GOARCH == "arm64" {
		return elf.EM_AARCH64
	}
	return elf.EM_X86_64
}
