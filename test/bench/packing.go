package main

import (
	"context"
	"fmt"

	models "github.com/dovetail-dra/dovetail/pkg/simulator/model"
	"github.com/dovetail-dra/dovetail/test/packing"
)

// packingWeeks have the seeds 1 and up.
const packingWeeks = 10

// packingKinds are mostly small, some by memory alone, few as large as the GPU.
var packingKinds = []packing.Kind{
	{Weight: 30, Profile: "1g.10gb"}, {Weight: 2, Profile: "1g.10gb+me"}, {Weight: 8, Profile: "1g.20gb"},
	{Weight: 15, Profile: "2g.20gb"}, {Weight: 10, Profile: "3g.40gb"}, {Weight: 5, Profile: "4g.40gb"}, {Weight: 3, Profile: "7g.80gb"},
	{Weight: 9, Memory: 8 << 30}, {Weight: 9, Memory: 15 << 30}, {Weight: 6, Memory: 30 << 30}, {Weight: 3, Memory: 60 << 30},
}

// packing lets weeks of requests pass under several orders of publishing.
func (b *bench) packing(ctx context.Context) ([]table, error) {
	h100, err := models.Lookup("h100-sxm5-80gb")
	if err != nil {
		return nil, err
	}
	orders := []packing.Order{packing.Ours, packing.FromStart, packing.ByProfile, packing.FromEnd}
	t := table{
		title: "Packing: a week of partitions on 10 nodes with 8 H100",
		made: fmt.Sprintf("`bin/bench -only packing`: first fit as the scheduler's allocator does it (`test/packing`, compared with the allocator), %d weeks with the seeds "+
			"1 to %[1]d, the same for every order. Requests arrive at random, stay 4 h on average, and are refused where they do not fit: 73%% ask for a profile (30 of 100 for 1g, 15 for 2g, "+
			"10 for 3g, 8 for 1g with double memory, 5 for 4g, 3 for 7g, 2 for 1g+me), 27%% for at least 8, 15, 30 or 60 GiB (9, 9, 6, 3). The figures are the shares of requests that were refused although the free "+
			"compute slices of all GPUs together would have sufficed. NVIDIA's driver publishes profile by profile, in the order of NVML, each from its lowest start up. From the end: see [packing](packing.md).", packingWeeks),
		columns: []string{"Load", "Nodes are tried", "Requests", "Ours", "From the start", "Profile by profile", "From the end", "Weeks in which ours refused fewer than profile by profile"},
	}
	for _, load := range []float64{0.8, 0.9, 1} {
		for _, inOrder := range []bool{false, true} {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			t.add(packingRow(h100, orders, load, inOrder)...)
		}
	}
	return []table{t}, nil
}

func packingRow(m *models.Model, orders []packing.Order, load float64, inOrder bool) []string {
	sums := make([]packing.Outcome, len(orders))
	fewer := 0
	for seed := range packingWeeks {
		week := packing.Week{Model: m, Nodes: 10, GPUs: gpus, Kinds: packingKinds, Load: load, InOrder: inOrder, Seed: uint64(seed + 1)}
		scattered := make([]int, len(orders))
		for i, o := range orders {
			one := week.Run(o)
			scattered[i] = one.Scattered
			sums[i].Requests += one.Requests
			sums[i].Scattered += one.Scattered
		}
		if scattered[0] < scattered[2] {
			fewer++
		}
	}
	tried := "in any order"
	if inOrder {
		tried = "one after the other"
	}
	row := []string{fmt.Sprintf("%.0f%%", 100*load), tried, fmt.Sprint(sums[0].Requests)}
	for _, s := range sums {
		row = append(row, fmt.Sprintf("%.2f%%", 100*float64(s.Scattered)/float64(s.Requests)))
	}
	return append(row, fmt.Sprintf("%d of %d", fewer, packingWeeks))
}
