//! Which quota an instance counts against.

/// Interruptible instances have quotas of their own.
const INTERRUPTIBLE: &str = "PREEMPTIBLE_";

/// The quota of a type of GPU; none for a type that is not known.
pub fn gpu_metric(gpu: &str, interruptible: bool) -> Option<String> {
    let metric = match gpu {
        "nvidia-tesla-k80" => "NVIDIA_K80_GPUS",
        "nvidia-tesla-p4" => "NVIDIA_P4_GPUS",
        "nvidia-tesla-p100" => "NVIDIA_P100_GPUS",
        "nvidia-tesla-v100" => "NVIDIA_V100_GPUS",
        "nvidia-tesla-t4" => "NVIDIA_T4_GPUS",
        "nvidia-tesla-a100" => "NVIDIA_A100_GPUS",
        "nvidia-a100-80gb" => "NVIDIA_A100_80GB_GPUS",
        "nvidia-h100-80gb" | "nvidia-h100-mega-80gb" => "NVIDIA_H100_GPUS",
        "nvidia-l4" => "NVIDIA_L4_GPUS",
        _ => return None,
    };
    let prefix = if interruptible { INTERRUPTIBLE } else { "" };
    Some(format!("{prefix}{metric}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruptible_ones_have_their_own() {
        assert_eq!(gpu_metric("nvidia-a100-80gb", false).unwrap(), "NVIDIA_A100_80GB_GPUS");
        assert_eq!(gpu_metric("nvidia-l4", true).unwrap(), "PREEMPTIBLE_NVIDIA_L4_GPUS");
        assert_eq!(gpu_metric("abacus", true), None);
    }
}
