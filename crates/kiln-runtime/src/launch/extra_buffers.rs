//! Buffers that a launch uses although they are no arguments.

use kiln_driver::Access;

use super::builder::Launch;
use crate::buffer::{BufferBytes, Element, GpuRef};
use crate::error::Misuse;

impl<'a, T> Launch<'a, T> {
    /// A buffer that the kernel reads although it is no argument: through a pointer that lies in another buffer, for example. It takes
    /// part in the order as an argument does, and the launch may touch it.
    ///
    /// ```
    /// # use kiln::DeviceRuntime;
    /// # const SUM: &str = "
    /// #     .version 7.0
    /// #     .target sm_70
    /// #     .address_size 64
    /// #     .visible .entry follow(.param .u64 list, .param .u64 out) {
    /// #         .reg .b32 %r<2>; .reg .b64 %rd<4>;
    /// #         ld.param.u64 %rd1, [list]; ld.param.u64 %rd2, [out];
    /// #         ld.global.u64 %rd3, [%rd1]; ld.global.u32 %r1, [%rd3]; st.global.u32 [%rd2], %r1;
    /// #         ret;
    /// #     }";
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let follow = gpu.kernel(SUM, "follow")?; // follow(unsigned** list, unsigned* out): *out = **list
    /// let (data, out) = (gpu.upload(&[7_u32])?, gpu.zeros::<u32>(1)?);
    /// let list = gpu.upload(&[data.address().0])?;
    ///
    /// // SAFETY: `follow` reads the list and what it points to, and writes `out`.
    /// unsafe { gpu.launch(&follow).threads(1).read(&list).write(&out).also_read(&data).submit()? };
    /// assert_eq!(out.download()?, [7]);
    /// # Ok::<(), kiln::Error>(())
    /// ```
    pub fn also_read<V: Element>(&mut self, buffer: &'a GpuRef<V>) -> &mut Self {
        self.beside(buffer, Access::Read)
    }

    /// A buffer that the kernel reads or writes although it is no argument; see [`also_read`](Self::also_read).
    pub fn also_write<V: Element>(&mut self, buffer: &'a GpuRef<V>) -> &mut Self {
        self.beside(buffer, Access::ReadWrite)
    }

    #[inline(never)]
    fn beside<V: Element>(&mut self, buffer: &'a GpuRef<V>, access: Access) -> &mut Self {
        if let Err(error) = buffer.block().check_runtime(self.runtime) {
            let kernel = self.kernel;
            self.wrong.get_or_insert_with(|| {
                error.placed(format!("kernel `{}`, a buffer declared beside the arguments", kernel.name()))
            });
            return self;
        }
        if self.home.is_none() {
            self.take_home(buffer.block(), access);
        }
        let Some(held) = buffer.held() else { return self };
        self.uses.push(buffer.used(access, Misuse::BESIDE));
        if let Some(kept) = &mut self.kept {
            kept.declare(&BufferBytes::of(buffer), access, None);
            if kept.arguments.is_some() {
                kept.beside.push((held, access));
            }
        }
        self
    }
}
