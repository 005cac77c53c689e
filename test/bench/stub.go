package main
import "context"
func (b *bench) files(ctx context.Context) ([]table, error) { return nil, nil }
func (b *bench) parallel(ctx context.Context) ([]table, error) { return nil, nil }
func (b *bench) memory_(ctx context.Context) ([]table, error) { return nil, nil }
func (b *bench) kubelet(ctx context.Context) ([]table, error) { return nil, nil }
func (b *bench) inventory(ctx context.Context) ([]table, error) { return nil, nil }
