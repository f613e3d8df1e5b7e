// Marks a function of NVML's C interface. Everything else of the library is hidden.
#pragma once

#define EXPORTED extern "C" __attribute__((visibility("default")))
