// Package mlx5dev is a model of a ConnectX NIC and of its kernel driver, for a
// provider to be judged by without hardware. It answers the driver's requests and
// reads the provider's queues as the NIC does: doorbell stores to a register page,
// doorbell records, work queue entries; it writes completion queue entries with
// owner bits and honours arming. The requests run on a simulated NIC of package
// sim, so peers may be models or plain simulated NICs.
//
// It shares no code with the provider: formats are read here from the NIC's rules
// anew. What it reads it checks strictly. A request that breaks a rule stops its
// queue pair with an error completion, and is kept as a [Fault] with its bytes
// explained field by field.
//
// A plain store cannot be trapped, so whoever drives the model tells it of stores
// to registers (Rung) and of new receives (Received); all else it finds itself.
package mlx5dev
