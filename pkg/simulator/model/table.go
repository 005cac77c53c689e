package model

import "github.com/dovetail-dra/dovetail/pkg/machine"

const mib = 1 << 20

var table = []Model{
	{
		Name: "a100-sxm4-40gb", ProductName: "NVIDIA A100-SXM4-40GB", Brand: "NVIDIA",
		Architecture: "Ampere", ComputeCapability: machine.Version{Major: 8},
		Memory:          machine.Memory{Total: 40960 * mib, Reserved: 571 * mib},
		Multiprocessors: 108, Cores: 6912,
		PCIDevice: 0x20b010de, PCISubsystem: 0x134f10de,
		ECC: true, NVLinks: 12,
		MIG: &MIG{Slices: 7, MemoryUnits: 8, Engines: ampereAll, Profiles: sevenSlices(sevenSliceSizes{
			names:   [6]string{"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"},
			memory:  [6]uint64{4864, 9856, 9856, 19968, 19968, 40192},
			sms:     [6]int{14, 14, 28, 42, 56, 98},
			engines: ampereEngines,
		})},
	},
	{
		Name: "a100-sxm4-80gb", ProductName: "NVIDIA A100-SXM4-80GB", Brand: "NVIDIA",
		Architecture: "Ampere", ComputeCapability: machine.Version{Major: 8},
		Memory:          machine.Memory{Total: 81920 * mib, Reserved: 616 * mib},
		Multiprocessors: 108, Cores: 6912,
		PCIDevice: 0x20b210de, PCISubsystem: 0x146310de,
		ECC: true, NVLinks: 12,
		MIG: &MIG{Slices: 7, MemoryUnits: 8, Engines: ampereAll, Profiles: sevenSlices(sevenSliceSizes{
			names:   [6]string{"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
			memory:  [6]uint64{9856, 19968, 19968, 40192, 40192, 80384},
			sms:     [6]int{14, 14, 28, 42, 56, 98},
			engines: ampereEngines,
		})},
	},
	{
		Name: "h100-sxm5-80gb", ProductName: "NVIDIA H100 80GB HBM3", Brand: "NVIDIA",
		Architecture: "Hopper", ComputeCapability: machine.Version{Major: 9},
		Memory:          machine.Memory{Total: 81559 * mib, Reserved: 551 * mib},
		Multiprocessors: 132, Cores: 16896,
		PCIDevice: 0x233010de, PCISubsystem: 0x16c110de,
		ECC: true, NVLinks: 18, Fabric: true,
		MIG: &MIG{OnDemand: true, Slices: 7, MemoryUnits: 8, Engines: hopperAll, Profiles: sevenSlices(sevenSliceSizes{
			names:   [6]string{"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
			memory:  [6]uint64{9984, 20096, 20096, 40448, 40448, 81152},
			sms:     [6]int{16, 26, 32, 60, 64, 132},
			engines: hopperEngines,
		})},
	},
	{
		// Memory of 1g with double memory is an estimate.
		Name: "h100-nvl-94gb", ProductName: "NVIDIA H100 NVL", Brand: "NVIDIA",
		Architecture: "Hopper", ComputeCapability: machine.Version{Major: 9},
		Memory:          machine.Memory{Total: 95830 * mib, Reserved: 470 * mib},
		Multiprocessors: 132, Cores: 16896,
		PCIDevice: 0x232110de, PCISubsystem: 0x183910de,
		ECC: true, NVLinks: 12,
		MIG: &MIG{OnDemand: true, Slices: 7, MemoryUnits: 8, Engines: hopperAll, Profiles: sevenSlices(sevenSliceSizes{
			names:   [6]string{"1g.12gb", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"},
			memory:  [6]uint64{11008, 22144, 22144, 47488, 47488, 95360},
			sms:     [6]int{16, 26, 32, 60, 64, 132},
			engines: hopperEngines,
		})},
	},
	{
		Name: "h200-sxm5-141gb", ProductName: "NVIDIA H200", Brand: "NVIDIA",
		Architecture: "Hopper", ComputeCapability: machine.Version{Major: 9},
		Memory:          machine.Memory{Total: 143771 * mib, Reserved: 627 * mib},
		Multiprocessors: 132, Cores: 16896,
		PCIDevice: 0x233510de, PCISubsystem: 0x18be10de,
		ECC: true, NVLinks: 18, Fabric: true,
		MIG: &MIG{OnDemand: true, Slices: 7, MemoryUnits: 8, Engines: hopperAll, Profiles: sevenSlices(sevenSliceSizes{
			names:   [6]string{"1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"},
			memory:  [6]uint64{16384, 33024, 33024, 71168, 71168, 143104},
			sms:     [6]int{16, 26, 32, 60, 64, 132},
			engines: hopperEngines,
		})},
	},
	{
		// Memory and multiprocessors from 3g upwards are estimates.
		Name: "b200", ProductName: "NVIDIA B200", Brand: "NVIDIA",
		Architecture: "Blackwell", ComputeCapability: machine.Version{Major: 10},
		Memory:          machine.Memory{Total: 183359 * mib, Reserved: 575 * mib},
		Multiprocessors: 148, Cores: 18944,
		PCIDevice: 0x290110de, PCISubsystem: 0x199910de,
		ECC: true, NVLinks: 18, Fabric: true,
		MIG: &MIG{OnDemand: true, Slices: 7, MemoryUnits: 8, Engines: blackwellAll, Profiles: sevenSlices(sevenSliceSizes{
			names:   [6]string{"1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"},
			memory:  [6]uint64{22528, 45312, 45312, 91136, 91136, 182784},
			sms:     [6]int{18, 30, 36, 70, 72, 148},
			engines: blackwellEngines,
		})},
	},
	{
		// Memory from 3g upwards, most multiprocessors and all engines are estimates.
		Name: "gb200", ProductName: "NVIDIA GB200", Brand: "NVIDIA",
		Architecture: "Blackwell", ComputeCapability: machine.Version{Major: 10},
		Memory:          machine.Memory{Total: 189471 * mib, Reserved: 585 * mib},
		Multiprocessors: 152, Cores: 19456,
		PCIDevice: 0x294110de, PCISubsystem: 0x204610de,
		ECC: true, NVLinks: 18, Fabric: true,
		MIG: &MIG{OnDemand: true, Slices: 7, MemoryUnits: 8, Engines: blackwellAll, Profiles: sevenSlices(sevenSliceSizes{
			names:   [6]string{"1g.23gb", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb"},
			memory:  [6]uint64{22528, 46592, 46592, 94208, 94208, 188416},
			sms:     [6]int{18, 32, 38, 74, 76, 152},
			engines: blackwellEngines,
		})},
	},
	{
		Name: "a30", ProductName: "NVIDIA A30", Brand: "NVIDIA",
		Architecture: "Ampere", ComputeCapability: machine.Version{Major: 8},
		Memory:          machine.Memory{Total: 24576 * mib, Reserved: 525 * mib},
		Multiprocessors: 56, Cores: 3584,
		PCIDevice: 0x20b710de, PCISubsystem: 0x153210de,
		ECC: true,
		MIG: &MIG{Slices: 4, MemoryUnits: 4, Engines: a30All, Profiles: a30Profiles},
	},
	{
		Name: "rtx-pro-6000", ProductName: "NVIDIA RTX PRO 6000 Blackwell Server Edition", Brand: "NVIDIA RTX",
		Architecture: "Blackwell", ComputeCapability: machine.Version{Major: 12},
		Memory:          machine.Memory{Total: 97887 * mib, Reserved: 636 * mib},
		Multiprocessors: 188, Cores: 24064,
		PCIDevice: 0x2bb510de, PCISubsystem: 0x204e10de,
		ECC: true,
		MIG: &MIG{OnDemand: true, Slices: 4, MemoryUnits: 12, Engines: proAll, Profiles: rtxPro6000Profiles},
	},
	{
		Name: "l40s", ProductName: "NVIDIA L40S", Brand: "NVIDIA",
		Architecture: "Ada Lovelace", ComputeCapability: machine.Version{Major: 8, Minor: 9},
		Memory:          machine.Memory{Total: 46068 * mib, Reserved: 595 * mib},
		Multiprocessors: 142, Cores: 18176,
		PCIDevice: 0x26b910de, PCISubsystem: 0x185110de,
		ECC: true,
	},
	{
		Name: "l4", ProductName: "NVIDIA L4", Brand: "NVIDIA",
		Architecture: "Ada Lovelace", ComputeCapability: machine.Version{Major: 8, Minor: 9},
		Memory:          machine.Memory{Total: 23034 * mib, Reserved: 499 * mib},
		Multiprocessors: 58, Cores: 7424,
		PCIDevice: 0x27b810de, PCISubsystem: 0x16ca10de,
		ECC: true,
	},
	{
		Name: "t4", ProductName: "Tesla T4", Brand: "Tesla",
		Architecture: "Turing", ComputeCapability: machine.Version{Major: 7, Minor: 5},
		Memory:          machine.Memory{Total: 15360 * mib, Reserved: 388 * mib},
		Multiprocessors: 40, Cores: 2560,
		PCIDevice: 0x1eb810de, PCISubsystem: 0x12a210de,
		ECC: true,
	},
	{
		// Older than Volta: no MPS of the kind that later GPUs have. What the driver
		// reserves is an estimate.
		Name: "p100-pcie-16gb", ProductName: "Tesla P100-PCIE-16GB", Brand: "Tesla",
		Architecture: "Pascal", ComputeCapability: machine.Version{Major: 6},
		Memory:          machine.Memory{Total: 16384 * mib, Reserved: 264 * mib},
		Multiprocessors: 56, Cores: 3584,
		PCIDevice: 0x15f810de, PCISubsystem: 0x118f10de,
		ECC: true,
	},
}
