//! Faces of a cube.

/// The face that a direction hits, and where on it: from 0 to 1.
pub(crate) fn face_of([x, y, z]: [f32; 3]) -> (u32, [f32; 2]) {
    let (face, m, s, t) = if x.abs() >= y.abs() && x.abs() >= z.abs() {
        if x >= 0.0 { (0, x, -z, -y) } else { (1, -x, z, -y) }
    } else if y.abs() >= z.abs() {
        if y >= 0.0 { (2, y, x, z) } else { (3, -y, x, -z) }
    } else if z >= 0.0 {
        (4, z, x, -y)
    } else {
        (5, -z, -x, -y)
    };
    (face, [(s / m + 1.0) / 2.0, (t / m + 1.0) / 2.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_axis_hits_the_middle_of_its_face() {
        let hit = |direction: [f32; 3]| face_of(direction);
        let middle = [0.5, 0.5];
        for (face, direction) in (0..).zip([
            [2.0, 0.0, 0.0],
            [-2.0, 0.0, 0.0],
            [0.0, 2.0, 0.0],
            [0.0, -2.0, 0.0],
            [0.0, 0.0, 2.0],
            [0.0, 0.0, -2.0],
        ]) {
            assert_eq!(hit(direction), (face, middle));
        }
        // On the face of +x, s runs along -z and t along -y.
        assert_eq!(hit([1.0, 0.5, -0.5]), (0, [0.75, 0.25]));
        assert_eq!(hit([-1.0, 0.5, -0.5]), (1, [0.25, 0.25]));
        assert_eq!(hit([0.5, 1.0, -0.5]), (2, [0.75, 0.25]));
        assert_eq!(hit([0.5, 0.25, -1.0]), (5, [0.25, 0.375]));
    }
}
