package rdmacm

// Handle is the kernel's number of the ID.
func (id *ID) Handle() uint32 { return id.handle }
